"""How `chat` shows what the agent does: without the names of nodes, and with the plan when it changes."""

from __future__ import annotations

import sys
from typing import Any

from graphwright._internal.optional import is_installed
from graphwright.cli._plain import PlainView
from graphwright.cli._text import one_line
from graphwright.cli._views import View, is_terminal
from graphwright.run_events import NodeFinished, RunEvent

__all__ = ["ChatLines", "chat_view", "plan_lines", "plan_of_event"]

_MARKS = {"done": "x", "running": ">", "skipped": "-", "error": "!", "pending": " "}


def chat_view() -> View:
    """Return the view that fits where the output goes, for one goal."""
    if is_terminal(sys.stdout) and is_installed("rich"):
        from graphwright.cli._chat_terminal import ChatTerminal

        return ChatTerminal(sys.stdout)
    return ChatLines(sys.stdout)


def plan_of_event(event: RunEvent) -> list[dict[str, Any]] | None:
    """Return the plan as an event leaves it; `None` when it does not touch the plan."""
    if not isinstance(event, NodeFinished) or event.path or not isinstance(event.result.output, dict):
        return None
    update = event.result.output.get("update")
    return update.get("plan") if isinstance(update, dict) else None


def plan_lines(plan: list[dict[str, Any]]) -> list[str]:
    """Return the steps of a plan, one a line, with how each stands."""
    return [
        f"[{_MARKS.get(step['status'], '?')}] {step['step']}. {one_line(str(step['description']), 200)}"
        for step in plan
    ]


class ChatLines(PlainView):
    """Lines of plain text."""

    def show(self, event: RunEvent) -> None:
        """Show an event."""
        super().show(event)
        for line in plan_lines(plan_of_event(event) or []):
            self._line(f"plan     {line}")

    def _go_to(self, path: str, node: str) -> None:
        if path:
            super()._go_to(path, node)
