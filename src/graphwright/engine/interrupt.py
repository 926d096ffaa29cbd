"""Pause a run to ask somebody, and do an effect once however often the run goes on.

```python
async def book(flight: str) -> str:
    answer = await interrupt("seat", {"flight": flight})
    return await once("booking", lambda: reserve(flight, answer["seat"]))
```

A pause is a result: the run ends as paused, and goes on when its answers are there, in this process or another. The
code that asked runs again from its top then, so it has to say that it may: `reenterable=True` on the tool or node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphwright._internal.aio import call_maybe_async
from graphwright.engine.base import NodeContext
from graphwright.engine.journal import EXPIRED, Ask, Frame
from graphwright.exceptions import ConfigurationError, GraphwrightError, RunPausedError
from graphwright.interrupts import (
    APPROVAL,
    BUDGET,
    HUMAN,
    MCP_INPUT,
    QUESTION,
    ApprovalDecision,
    Interrupt,
    read_approval,
)
from graphwright.run_scope import current_call, run_scope

__all__ = [
    "APPROVAL",
    "BUDGET",
    "HUMAN",
    "MCP_INPUT",
    "QUESTION",
    "ApprovalDecision",
    "Interrupt",
    "RunPausedError",
    "ask_in",
    "interrupt",
    "once",
    "read_approval",
]

NO_LOG = "this run has no log, so it cannot pause; give runlog=True, a path or a log to build_agent"


async def interrupt(kind: str, payload: dict[str, Any]) -> Any:
    """Ask whoever runs the agent, from inside a tool or a node, and return the answer.

    The first time, the run pauses here. When it goes on, the tool or node runs again from its top, and this returns.
    Questions are told apart by their order, so the same ones have to be asked each time.

    Raises:
        ConfigurationError: no run is going on here, it has no log, or the tool or node is not `reenterable`.
        GraphwrightError: another question was asked in this place before.
    """
    if not isinstance(kind, str) or not kind or not isinstance(payload, dict):
        raise ConfigurationError(f"interrupt({kind!r}, {payload!r}): give a kind as text and a payload as a dict")
    frame, path = _here("interrupt()")
    ask = Ask(kind, str(frame.next(f"asked in {path}")), payload)
    answer = frame.journal.ask(path, [ask])[0]
    frame.journal.accept(path, ask)
    return answer


async def once(key: str, function: Callable[[], Any]) -> Any:
    """Call `function`, sync or async, and return its value; when the run goes on later, only return the value.

    A function that was cut off while it ran is not called again: what it did is unknown.

    Raises:
        ConfigurationError: no run with a log is going on here.
        GraphwrightError: an earlier leg of the run was cut off inside this very effect.
        UnstorableError: the value cannot be kept.
    """
    frame, path = _here("once()")
    journal = frame.journal
    found = journal.find("once", path, key)
    if found is not None:
        return found["value"]
    if journal.find("started", path, f"once:{key}") is not None:
        raise GraphwrightError(f"once({key!r}) was cut off while it ran; whether it took effect is unknown")
    journal.put("started", path, f"once:{key}", {})
    await journal.flush()
    value = await call_maybe_async(function)
    journal.put("once", path, key, {"value": value}, soon=True)
    return value


def ask_in(context: NodeContext, asks: list[tuple[str, str, dict[str, Any], float | None]]) -> list[Any]:
    """Ask several things at once from the code of a node: `(kind, key, payload, expires_at)` each.

    Returns the answers in order, `None` for what nobody answered in time.

    Raises:
        ConfigurationError: the run has no log.
    """
    frame = context.frame
    if frame is None:
        raise ConfigurationError(NO_LOG)
    made = [Ask(kind, key, payload, expires_at) for kind, key, payload, expires_at in asks]
    answers = frame.journal.ask(frame.path, made)
    for ask in made:
        frame.journal.accept(frame.path, ask)
    return [None if answer is EXPIRED else answer for answer in answers]


def _here(what: str) -> tuple[Frame, str]:
    """Return the frame of the visit that goes on here, and the frame of the tool call in it, if there is one."""
    call = current_call.get()
    if call is not None:
        entry, _, batch = call
        if batch is None:
            raise ConfigurationError(NO_LOG)
        if not (entry.tool.reenterable or entry.tool.asks):
            raise ConfigurationError(_not_reenterable(what, f"tool {entry.call.name!r}"))
        return batch.frame, batch.inner_frame(entry.call)
    context = run_scope.get()
    if not isinstance(context, NodeContext):
        raise ConfigurationError(f"{what} was called outside of a run; call it in a tool or a node")
    frame = context.frame
    if frame is None:
        raise ConfigurationError(NO_LOG)
    if not getattr(frame.node, "reenterable", False):
        raise ConfigurationError(_not_reenterable(what, f"node {frame.node.name!r}"))
    return frame, frame.path


def _not_reenterable(what: str, who: str) -> str:
    return (
        f"{what} was called in {who}, which does not say that it may run again from its top; set reenterable=True on "
        "it, and keep its other effects in once()"
    )
