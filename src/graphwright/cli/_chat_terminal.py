"""How `chat` looks at a terminal: the plan in a panel, what waits at the lower edge. Needs rich."""

from __future__ import annotations

from rich.panel import Panel
from rich.text import Text

from graphwright.cli._chat_views import plan_lines, plan_of_event
from graphwright.cli._terminal import TerminalView
from graphwright.run_events import RunEvent

__all__ = ["ChatTerminal"]


class ChatTerminal(TerminalView):
    """What the terminal view shows, without the names of the outer nodes, and with the plan."""

    def show(self, event: RunEvent) -> None:
        """Show an event."""
        super().show(event)
        plan = plan_of_event(event)
        if plan:
            self._close_line()
            text = Text("\n".join(plan_lines(plan)))
            self._console.print(Panel(text, title="plan", title_align="left", expand=False))

    def _go_to(self, path: str, node: str) -> None:
        if path:
            super()._go_to(path, node)
