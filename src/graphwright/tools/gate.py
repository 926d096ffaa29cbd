"""The gate that a call passes before it runs: known tool, readable arguments that fit, no objection of a hook."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from graphwright.exceptions import ToolArgumentError, ToolError
from graphwright.tools.content import ERROR_CHARS, error_text, safe_str, short_repr
from graphwright.tools.problems import closest

if TYPE_CHECKING:
    from graphwright.tools.base import Approval, Tool, ToolRun
    from graphwright.tools.toolset import ToolSet
    from graphwright.types import ToolCall

__all__ = ["CheckedCall", "call_hook", "check_call", "pass_hook", "validate_args"]

_RAW_CHARS = 1000
_MOST_NAMES = 20
_CONTAINERS = (list, dict)


class CheckedCall:
    """A call and what the gate says of it."""

    __slots__ = (
        "approval",
        "approved",
        "args",
        "call",
        "edited",
        "index",
        "notes",
        "raised",
        "refusal",
        "tool",
        "verdict",
    )

    def __init__(self, call: ToolCall, index: int, tool: Tool | None) -> None:
        self.call = call
        self.index = index
        self.tool: Any = tool
        """The tool; `None` only where there is a refusal."""
        self.args = call.args
        self.refusal: str | None = None
        """Why the call does not run, in words for the model."""
        self.raised = False
        """Whether the gate refused it because something raised."""
        self.verdict = ""
        """The `ToolResult.verdict` of a call that does not run."""
        self.approval: Approval | None = None
        """The question to a person that the call waits for."""
        self.approved = False
        """Whether somebody was asked and said yes."""
        self.notes: list[dict[str, Any]] | None = None
        """What the gate noted."""
        self.edited = False
        """Whether a person changed the arguments."""

    def refuse(self, text: str, *, raised: bool = False) -> None:
        """Answer the call with an error instead of running it."""
        self.refusal = text if len(text) <= 2 * ERROR_CHARS else text[: 2 * ERROR_CHARS] + "..."
        self.raised = raised


def check_call(call: ToolCall, index: int, tools: ToolSet, run: ToolRun) -> CheckedCall:
    """Return the call with its tool and its validated arguments, or with the reason why it does not run."""
    tool = tools.get(call.name)
    entry = CheckedCall(call, index, tool)
    if tool is None:
        entry.refuse(_unknown(call.name, tools.names))
    elif call.problem or not isinstance(call.args, dict):
        entry.refuse(_unreadable(call, tool))
        entry.args = {}
    else:
        try:
            # The tool gets lists and dicts of its own: what it does to them must not reach the conversation.
            entry.args = _own(call.args)
        except RecursionError:
            entry.refuse(f"the arguments of {call.name!r} are nested too deeply")
        else:
            if run.validate:
                validate_args(entry, entry.args)
            elif tool.injected:
                entry.args = {key: value for key, value in entry.args.items() if key not in tool.injected}
    return entry


def _own(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _own(entry) if type(entry) in _CONTAINERS else entry for key, entry in value.items()}
    return [_own(entry) if type(entry) in _CONTAINERS else entry for entry in value]


def validate_args(entry: CheckedCall, args: dict[str, Any], *, blame: str = "") -> None:
    """Let the tool check arguments, which become those of the call; what does not fit refuses it."""
    try:
        entry.args = entry.tool.validate(args)
    except ToolArgumentError as error:
        entry.refuse(blame + safe_str(error))
    except Exception as error:  # a validator is code of the tool's author
        entry.refuse(f"the arguments of {entry.call.name!r} could not be checked: {error_text(error)}", raised=True)


async def pass_hook(
    entry: CheckedCall, before: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]], *, validate: bool
) -> None:
    """Show a call to the hook, which may change its arguments or, by raising, refuse it."""
    shown = dict(entry.args)
    copy = _copy_of(shown)
    try:
        changed = await call_hook(before, entry.call.name, shown)
    except Exception as error:  # raising is how a hook says no
        entry.refuse(safe_str(error) or type(error).__name__, raised=True)
        return
    if changed is None or _same(changed, copy):
        return
    if not isinstance(changed, dict):
        entry.refuse(f"a hook returned {short_repr(changed)} in place of the arguments, so the call did not run")
    elif validate:
        # What only a hook may give is no argument that the tool's schema knows.
        given = {key: changed[key] for key in entry.tool.injected & changed.keys()}
        validate_args(
            entry,
            {key: value for key, value in changed.items() if key not in given},
            blame="a hook changed this call, and so ",
        )
        entry.args = {**entry.args, **given}
    else:
        entry.args = changed


def _copy_of(args: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return deepcopy(args)
    except Exception:  # a value that cannot be copied: then whatever comes back counts as changed
        return None


def _same(changed: Any, copy: dict[str, Any] | None) -> bool:
    try:
        return copy is not None and bool(changed == copy)
    except Exception:  # the comparison is foreign code too
        return False


async def call_hook(hook: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    """Call a hook; it can neither swallow the cancellation of the run nor cancel it by itself."""
    task = asyncio.current_task()
    asked = task.cancelling() if task is not None else 0
    try:
        value = await hook(*args)
    except asyncio.CancelledError as error:
        if task is None or task.cancelling() > asked:
            raise
        raise ToolError("a hook was cancelled from inside") from error
    if task is not None and task.cancelling() > asked:
        raise asyncio.CancelledError
    return value


def _unknown(name: str, known: tuple[str, ...]) -> str:
    shown = short_repr(name, 100)
    if not known:
        return f"there is no tool named {shown}; no tools can be called here"
    like = closest(name, known)
    first = [*like, *(entry for entry in known if entry not in like)][:_MOST_NAMES]
    hint = f"; did you mean {like[0]!r}?" if like else "."
    more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    return f"there is no tool named {shown}{hint} The tools are: {', '.join(first)}{more}"


def _unreadable(call: ToolCall, tool: Tool) -> str:
    problem = call.problem or f"the arguments are {short_repr(call.args)}, which is no JSON object"
    text = f"this call of {call.name!r} did not run: {problem}. Call again with one complete JSON object"
    names = tool.spec.parameters.get("properties", {})
    needed = tool.spec.parameters.get("required", ())
    if names:
        text += "; its keys are " + ", ".join(f"{name} (required)" if name in needed else name for name in names)
    if call.raw:
        cut = "..." if len(call.raw) > _RAW_CHARS else ""
        text += f". What came was: {call.raw[:_RAW_CHARS]}{cut}"
    return text
