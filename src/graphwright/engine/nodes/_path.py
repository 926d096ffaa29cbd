"""The path that an autonomous node takes: what has run, what the model is offered next, and what its choice means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from graphwright._internal.jsonio import find_json

__all__ = ["Choice", "Path", "menu", "read_choice"]

CHOOSE = (
    "Choose the next step towards answering the question.\n\nSteps:\n{steps}\n\nDone so far: {done}\n{note}"
    'Answer with one JSON object: {{"next_node": "<step>", "reason": "<why>"}}. '
    'When nothing more is needed, answer {{"next_node": "__done__", "reason": "<why>"}}.'
)

_FINISH = frozenset({"__done__", "__end__", "done", "finish"})


@dataclass(slots=True)
class Path:
    """The steps taken so far."""

    max_steps: int
    used: int = 0
    """Steps used up: those that ran, and choices that named none."""
    finished: bool = False
    answered: bool = False
    """True when a node that ends the run has written the reply."""
    note: str = ""
    """What the model is told before its next choice."""
    unreadable: bool = False
    output: dict[str, Any] = field(default_factory=lambda: {"steps": [], "total": 0})

    @property
    def names(self) -> list[str]:
        """The nodes that have run, in order."""
        return [step["node"] for step in self.output["steps"]]

    @property
    def over(self) -> bool:
        """Whether no further step may be chosen."""
        return self.finished or self.used >= self.max_steps

    def record(self, name: str, reason: str, error: str | None) -> None:
        """Note a step that has run."""
        steps = self.output["steps"]
        steps.append({"node": name, "reason": reason, "error": error})
        self.output["total"] = len(steps)
        self.used += 1
        self.unreadable = False
        self.note = f"The step {name!r} failed: {error}" if error is not None else ""

    def refuse(self, why: str, *, unreadable: bool = False) -> None:
        """Note a choice that cannot be run. A second one in a row that cannot even be read ends the path."""
        self.used += 1
        self.note = why
        self.finished = unreadable and self.unreadable
        self.unreadable = unreadable


@dataclass(frozen=True, slots=True)
class Choice:
    """What the model's reply means."""

    node: str | None = None
    reason: str = ""
    finished: bool = False
    problem: str = ""
    unreadable: bool = False


def menu(pool: Sequence[Any], path: Path, *, allow_repeat: bool) -> str:
    """Return the question for the next step."""
    lines = []
    for node in pool:
        if not allow_repeat and node.name in path.names:
            continue
        line = f"- {node.name}"
        about = getattr(node, "description", "")
        tools = ", ".join(_tool_names(node))
        line += f": {about}" if about else ""
        lines.append(f"{line} (tools: {tools})" if tools else line)
    note = f"{path.note}\n" if path.note else ""
    return CHOOSE.format(steps="\n".join(lines) or "none is left", done=", ".join(path.names) or "nothing", note=note)


def read_choice(reply: str, pool: Sequence[Any]) -> Choice:
    """Return what a reply chooses: the last JSON object in it that names a next node, or a bare word."""
    for value in reversed(find_json(reply)):
        if isinstance(value, dict) and isinstance(value.get("next_node"), str):
            return _meant(value["next_node"].strip(), str(value.get("reason") or ""), pool)
    bare = _meant(reply.strip().strip("`'\"*.").strip(), "", pool)
    if bare.finished or bare.node is not None:
        return bare
    return Choice(problem="The last reply was no JSON object with a next_node.", unreadable=True)


def _meant(said: str, reason: str, pool: Sequence[Any]) -> Choice:
    names = [node.name for node in pool]
    if said in names:
        return Choice(said, reason)
    alike = [name for name in names if name.casefold() == said.casefold()]
    if len(alike) == 1:
        return Choice(alike[0], reason)
    if said.casefold() in _FINISH:
        return Choice(reason=reason, finished=True)
    for node in pool:
        if said in _tool_names(node):
            return Choice(node.name, reason)
    return Choice(problem=f"There is no step {said!r}. The steps are: {', '.join(names)}.")


def _tool_names(node: Any) -> list[str]:
    return list(getattr(getattr(node, "tools", None), "names", ()))
