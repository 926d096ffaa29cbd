"""Let watchers follow a run: they see the events that it reports anyway, and how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from graphwright._internal.ids import new_run_id
from graphwright.caller import get_current_caller, get_current_session_id, isolation_key_of
from graphwright.engine.journal import LeavesRun
from graphwright.exceptions import RunAbortedError
from graphwright.interrupts import Interrupted
from graphwright.observability.base import RunInfo, RunListener, RunOutcome, RunWatcher
from graphwright.run_events import TextDelta

if TYPE_CHECKING:
    from graphwright.run_events import Emit, RunEvent
    from graphwright.runtime.request import RunRequest
    from graphwright.runtime.stack import Handler, Layer

__all__ = ["observe_layer"]

logger = logging.getLogger(__name__)

_watching: ContextVar[tuple[object, ...]] = ContextVar("graphwright_watching", default=())
"""The subjects of those who follow the run that is going on here; they hear of its parts already."""


def observe_layer(
    watchers: Sequence[RunWatcher], *, agent_id: str, model_name: str = "", asks_cache: bool = False
) -> Layer:
    """Return the layer that lets `watchers` follow each run. A watcher that fails is logged, and the run goes on."""

    async def layer(request: RunRequest, call_next: Handler) -> Any:
        heard = _watching.get() if request.inside is not None and request.emit is not None else ()
        new = [watcher for watcher in watchers if all(watcher.subject is not other for other in heard)]
        info = _info(request, agent_id, model_name, asks_cache and request.uses_cache)
        listeners = _begun(new, info)
        if not listeners:
            return await call_next(request)
        if request.run_id is None and request.resume is None:
            request.run_id = info.run_id
        request.emit = _Tee(listeners, request.emit)
        token = _watching.set((*heard, *(watcher.subject for watcher in new)))
        outcome = RunOutcome(status="aborted", run_id=info.run_id)
        try:
            result = await call_next(request)
            outcome = _outcome(result, info)
            return result
        except BaseException as error:
            outcome = _failure(error, info)
            raise
        finally:
            _watching.reset(token)
            for listener in listeners:
                _tell(listener.end, outcome)

    return layer


def _info(request: RunRequest, agent_id: str, model_name: str, asks_cache: bool) -> RunInfo:
    resume = request.resume
    run_id = request.run_id or (new_run_id() if resume is None else resume.run_id or "")
    caller = request.caller if request.caller is not None else get_current_caller()
    return RunInfo(
        run_id=run_id,
        agent_id=agent_id,
        caller_key=isolation_key_of(caller),
        session_id=request.session_id or get_current_session_id() or "",
        model_name=model_name,
        is_resumed=resume is not None,
        is_part=request.inside is not None,
        asks_cache=asks_cache,
    )


def _begun(watchers: Sequence[RunWatcher], info: RunInfo) -> list[RunListener]:
    listeners = []
    for watcher in watchers:
        try:
            listener = watcher.begin(info)
        except Exception:  # a watcher stops neither the others nor the run
            logger.exception("a watcher could not begin to follow run %s", info.run_id)
            continue
        if listener is not None:
            listeners.append(listener)
    return listeners


class _Tee:
    """A sink that lets listeners see each event before it goes on. Alone, it does not ask for text as it is written."""

    __slots__ = ("_listeners", "_onward", "quiet")

    def __init__(self, listeners: Sequence[RunListener], onward: Emit | None) -> None:
        self._listeners = listeners
        self._onward = onward
        self.quiet = onward is None or getattr(onward, "quiet", False)

    async def __call__(self, event: RunEvent) -> None:
        # Pieces of text are many, and whoever watches has the whole of it when the call ends.
        if type(event) is not TextDelta:
            # Before the reader: one who takes time would make every figure too long.
            for listener in self._listeners:
                _tell(listener.take, event)
        if self._onward is not None:
            await self._onward(event)


def _tell(method: Any, told: Any) -> None:
    try:
        method(told)
    except Exception:  # a watcher stops neither the others nor the run
        logger.exception("a watcher failed to take %s", type(told).__name__)


def _outcome(result: Any, info: RunInfo) -> RunOutcome:
    return RunOutcome(
        status=str(result.status),
        run_id=result.run_id or info.run_id,
        usage=result.usage,
        cache_hit=bool(result.cache_hit),
        text=str(result.text) if result.status == "completed" else "",
    )


def _failure(error: BaseException, info: RunInfo) -> RunOutcome:
    if isinstance(error, Interrupted):  # a part of another run, which is what pauses
        return RunOutcome(status="paused", run_id=info.run_id)
    cause = error.error if isinstance(error, LeavesRun) else error
    status = "failed"
    if isinstance(cause, TimeoutError):  # `RunTimeoutError` is one
        status = "timeout"
    elif isinstance(cause, (RunAbortedError, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)):
        status = "aborted"
    return RunOutcome(status=status, run_id=info.run_id, error=cause)
