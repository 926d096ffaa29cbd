"""`retryable`: a failed visit is made again, as if it had not been."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from graphwright._internal import clock
from graphwright.engine.node_result import NodeResult
from graphwright.exceptions import ConfigurationError
from graphwright.run_events import Restarted, RunEvent, TextDelta

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.flags import Visit

__all__ = ["around"]

logger = logging.getLogger(__name__)

_ATTEMPTS = 3
_FIRST_WAIT_S = 0.5
_WRITABLE = ("messages", "context", "plan", "completed", "observations", "reflections", "_checked")


async def around(run: GraphRun, node: Any, call_next: Visit) -> NodeResult:
    """Try up to three times, within the node's `max_iterations`; what a failed attempt wrote is taken back.

    A reader who was shown text of a failed attempt is told to drop it.
    """
    from graphwright.engine._children import copy_state

    state, usage = run.state, run.context.usage
    failed_tokens = 0
    for attempt in range(1, _ATTEMPTS + 1):
        before, spent = copy_state(state), usage.total_tokens or 0
        shown = _Shown(run)
        failure: Exception | None = None
        result: NodeResult | None = None
        try:
            result = await call_next()
        except ConfigurationError:
            raise
        except Exception as error:  # whatever a node raises may pass
            failure = error
        finally:
            shown.end()
        if result is not None and result.error is None:
            result.total_tokens += failed_tokens
            return result
        used_up = state.node_iterations.get(node.name, 0) >= node.max_iterations
        if attempt == _ATTEMPTS or used_up:
            if failure is not None:
                raise failure
            assert result is not None
            result.total_tokens += failed_tokens
            return result
        failed_tokens += (usage.total_tokens or 0) - spent
        for name in _WRITABLE:
            setattr(state, name, getattr(before, name))
        run.context.scratch.pop(node, None)
        state.increment_node_iteration(node.name)
        logger.info("node %r failed, attempt %d of %d; it runs again", node.name, attempt, _ATTEMPTS)
        await shown.void(node.name)
        await clock.sleep(_FIRST_WAIT_S * 2 ** (attempt - 1))
    raise AssertionError("the last attempt returns or raises")


class _Shown:
    """Keeps in mind which text of an attempt a listener has seen."""

    def __init__(self, run: GraphRun) -> None:
        self._context = run.context
        self._emit = run.context.emit
        self._texts: list[str] = []
        self._call_id = ""
        if self._emit is not None:
            run.context.emit = self._watched

    async def _watched(self, event: RunEvent) -> None:
        if isinstance(event, TextDelta):
            self._texts.append(event.text)
            self._call_id = event.call_id
        assert self._emit is not None
        await self._emit(event)

    def end(self) -> None:
        """Let events go straight to the listener again."""
        self._context.emit = self._emit

    async def void(self, node_name: str) -> None:
        """Tell the listener to drop what it has seen."""
        if self._emit is not None and self._texts:
            dropped = "".join(self._texts)
            context = self._context
            await self._emit(Restarted(node_name, self._call_id, dropped, run_id=context.run_id, path=context.path))
