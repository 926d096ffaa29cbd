"""What a run of the bot gives back: a dict that is also read by typed properties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Literal, Self, cast, get_args

from graphwright.exceptions import ConfigurationError
from graphwright.interrupts import APPROVAL, QUESTION, Interrupt
from graphwright.usage import Usage

__all__ = ["BotResponse", "RunStatus"]

RunStatus = Literal["completed", "paused", "aborted", "limit", "rejected", "failed"]
"""How a run stands: with an answer, waiting for answers, stopped by `abort()`, stopped by a limit, refused by an input
guard, or ended by an error."""

_STATUSES = get_args(RunStatus)
_FIGURES = ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "reasoning_tokens")
_PREVIEW = 80
_MOST_LEVELS = 60
_ATOMS = frozenset({str, int, float, bool, type(None)})


class BotResponse(dict[str, Any]):
    """The outcome of one run, about this run only. Its values are plain data: it can be written as JSON and pickled.

    `success` is true only when the goal was answered, so it needs the status `completed`.
    """

    __slots__ = ()

    def __init__(
        self,
        content: str = "",
        *,
        success: bool,
        status: RunStatus | None = None,
        thinking: str | None = None,
        logs: Iterable[str] = (),
        tools_executed: Iterable[Mapping[str, Any]] = (),
        token_usage: Usage | Mapping[str, int | None] | None = None,
        plan: Iterable[Mapping[str, Any]] = (),
        session_id: str | None = None,
        goal: str | None = None,
        questions: Iterable[Mapping[str, Any]] | None = None,
        needs_input: bool | None = None,
        run_id: str | None = None,
        node_trace: Iterable[Mapping[str, Any]] = (),
        guard_events: Iterable[Mapping[str, Any]] = (),
        pending_approval: Mapping[str, Any] | None = None,
        pending: Iterable[Interrupt | Mapping[str, Any]] = (),
    ) -> None:
        """Make a response; what waits for answers is read from `pending` unless it is given by itself.

        Without a status it is `completed` when there is success, `paused` when something is pending, else `failed`.
        """
        waiting = [_plain(asdict(entry) if isinstance(entry, Interrupt) else entry) for entry in pending]
        if questions is None:
            questions = _asked(waiting)
        if pending_approval is None:
            pending_approval = next((entry.get("value") for entry in waiting if entry.get("kind") == APPROVAL), None)
        asked = [_plain(question) for question in questions]
        super().__init__(
            content=content,
            thinking=thinking,
            logs=[str(line) for line in logs],
            tools_executed=[_plain(record) for record in tools_executed],
            token_usage=_figures(token_usage),
            success=success,
            status=_checked_status(status, success=success, waits=bool(waiting)),
            plan=[_plain(step) for step in plan],
            session_id=session_id,
            thread_id=session_id,
            goal=goal,
            questions=asked,
            needs_input=bool(asked) if needs_input is None else needs_input,
            run_id=run_id,
            node_trace=[_plain(entry) for entry in node_trace],
            guard_events=[_plain(event) for event in guard_events],
            pending_approval=_plain(pending_approval),
            pending=waiting,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the response that was written as JSON, or as a plain dict."""
        return cls(**{key: value for key, value in data.items() if key != "thread_id"})

    @property
    def content(self) -> str:
        """The answer; of a run that waits for answers, the questions as text."""
        return cast("str", self["content"])

    @property
    def thinking(self) -> str | None:
        """What the model thought, where its provider shows it."""
        return cast("str | None", self["thinking"])

    @property
    def logs(self) -> list[str]:
        """Lines about the run."""
        return cast("list[str]", self["logs"])

    @property
    def tools_executed(self) -> list[dict[str, Any]]:
        """One `ToolRecord` a call, credentials taken out."""
        return cast("list[dict[str, Any]]", self["tools_executed"])

    @property
    def token_usage(self) -> dict[str, int]:
        """Tokens of every model call of the run, in five figures."""
        return cast("dict[str, int]", self["token_usage"])

    @property
    def success(self) -> bool:
        """Whether the goal was answered."""
        return cast("bool", self["success"])

    @property
    def status(self) -> RunStatus:
        """How the run stands."""
        return cast("RunStatus", self["status"])

    @property
    def plan(self) -> list[dict[str, Any]]:
        """The steps of the plan as they are now."""
        return cast("list[dict[str, Any]]", self["plan"])

    @property
    def session_id(self) -> str | None:
        """The thread of the run."""
        return cast("str | None", self["session_id"])

    @property
    def thread_id(self) -> str | None:
        """The same as `session_id`: what a later run continues by."""
        return cast("str | None", self["session_id"])

    @property
    def goal(self) -> str | None:
        """What was asked."""
        return cast("str | None", self["goal"])

    @property
    def questions(self) -> list[dict[str, Any]]:
        """The questions that wait for an answer."""
        return cast("list[dict[str, Any]]", self["questions"])

    @property
    def needs_input(self) -> bool:
        """Whether questions wait for an answer."""
        return cast("bool", self["needs_input"])

    @property
    def run_id(self) -> str | None:
        """The id of the run, which never repeats."""
        return cast("str | None", self["run_id"])

    @property
    def node_trace(self) -> list[dict[str, Any]]:
        """The nodes that ran, in order."""
        return cast("list[dict[str, Any]]", self["node_trace"])

    @property
    def guard_events(self) -> list[dict[str, Any]]:
        """What guards decided, other than to allow."""
        return cast("list[dict[str, Any]]", self["guard_events"])

    @property
    def pending_approval(self) -> dict[str, Any] | None:
        """The first tool call that waits for a decision, as a person is shown it."""
        return cast("dict[str, Any] | None", self["pending_approval"])

    @property
    def pending(self) -> list[dict[str, Any]]:
        """Everything that the run waits for, each with the `id` that it is answered by."""
        return cast("list[dict[str, Any]]", self["pending"])

    def __repr__(self) -> str:
        content = self.get("content")
        text = content if isinstance(content, str) else _shown(content)
        cut = text if len(text) <= _PREVIEW else text[: _PREVIEW - 3] + "..."
        tools = self.get("tools_executed")
        count = len(tools) if isinstance(tools, list) else 0
        return (
            f"BotResponse(status={self.get('status')!r}, content={cut!r}, tools={count}, "
            f"thinking={'yes' if self.get('thinking') else 'no'})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), dict(self))


def _restored(kind: type[BotResponse], data: dict[str, Any]) -> BotResponse:
    made = kind.__new__(kind)
    made.update(data)
    return made


def _checked_status(status: str | None, *, success: bool, waits: bool) -> str:
    if status is None:
        return "completed" if success else "paused" if waits else "failed"
    if status not in _STATUSES:
        raise ConfigurationError(f"{status!r} is no status of a run; there are {', '.join(_STATUSES)}")
    if success and status != "completed":
        raise ConfigurationError(f"a run that is {status!r} did not answer its goal; give success=False")
    return status


def _figures(usage: Usage | Mapping[str, int | None] | None) -> dict[str, int]:
    given = usage.as_dict() if isinstance(usage, Usage) else usage or {}
    return {name: given.get(name) or 0 for name in _FIGURES}


def _asked(waiting: list[Any]) -> list[Any]:
    return [
        question
        for entry in waiting
        if entry.get("kind") == QUESTION
        for question in (entry.get("value") or {}).get("questions") or ()
    ]


def _plain(value: Any, levels: int = _MOST_LEVELS) -> Any:
    """Return a copy that JSON can hold; what it does not know becomes text."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if levels and kind is dict:
        return {
            key if type(key) is str else str(key): entry if type(entry) in _ATOMS else _plain(entry, levels - 1)
            for key, entry in value.items()
        }
    if isinstance(value, (bool, int, float, str)):
        return value
    if levels and isinstance(value, Mapping):
        return {str(key): _plain(entry, levels - 1) for key, entry in value.items()}
    if levels and isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(entry, levels - 1) for entry in value]
    return _shown(value)


def _shown(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # foreign code; its type is all that is left to show
        return f"[a {type(value).__name__}]"
