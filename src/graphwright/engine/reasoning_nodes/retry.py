"""The node that runs another node again when it fails, and lets it know why."""

from __future__ import annotations

import logging
from typing import Any

from graphwright._internal import clock
from graphwright.engine.base import BaseNode, context_of
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError, OutputSchemaError
from graphwright.run_events import Emit, Restarted, RunEvent, TextDelta

__all__ = ["RetryNode"]

logger = logging.getLogger(__name__)

TRY_ANOTHER_WAY = "Do it in another way."

_KEYS = ("_retry_attempt", "_retry_error", "_retry_node")
_MISSING = object()


class RetryNode(BaseNode):
    """Runs `wrapped_node`, and again after a failure: `max_retries` times more, so one attempt more in all.

    Each attempt is the whole node with its tool loop. The messages of a failed attempt are taken back,
    and so is the text that a listener was shown. While a node is
    tried again the context holds `_retry_attempt` (from 1), `_retry_error` and `_retry_node`, and a prompt node whose
    own answer was at fault reads so among its lessons. Before attempt `n + 1` there is a wait of
    `backoff_factor * 2 ** (n - 1)` seconds. A configuration error is not tried again.
    """

    node_type = "retry"
    reenterable = True

    def __init__(
        self,
        name: str = "retry",
        wrapped_node: Any = None,
        *,
        max_retries: int = 3,
        backoff_factor: float = 0.5,
        **base: Any,
    ) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well.

        Raises:
            ConfigurationError: there is no node to run, or a number is negative.
        """
        if not callable(getattr(wrapped_node, "execute", None)):
            raise ConfigurationError(f"RetryNode {name!r} needs a node as wrapped_node, not {wrapped_node!r}")
        if max_retries < 0 or backoff_factor < 0:
            raise ConfigurationError(
                f"RetryNode {name!r} has max_retries={max_retries!r}, backoff_factor={backoff_factor!r}; "
                "neither may be negative"
            )
        base.setdefault("description", f"Run {wrapped_node.name!r}, up to {max_retries} times again when it fails.")
        super().__init__(name, **base)
        self.wrapped_node = wrapped_node
        self.max_retries = max_retries
        self.backoff_factor = backoff_factor

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Run the node until an attempt succeeds or none is left."""
        before = {key: state.context.get(key, _MISSING) for key in _KEYS}
        try:
            return await self._attempts(state, config)
        finally:
            for key, value in before.items():
                if value is _MISSING:
                    state.context.pop(key, None)
                else:
                    state.context[key] = value

    async def _attempts(self, state: GraphState, config: Any) -> NodeResult:
        from graphwright.engine._children import run_child

        context = context_of(config)
        lesson: dict[str, Any] | None = None
        attempt = 0
        while True:
            attempt += 1
            kept = list(state.messages)
            heard = None if context.emit is None else _Heard(context.emit)
            try:
                listening = context if heard is None else context.listening(heard)
                done = await run_child(self.wrapped_node, state, listening, config, name=self.name)
            finally:
                _forget(lesson, state)
            if done.error is None:
                return self._success(done, attempt)
            state.messages[:] = kept
            state._checked = min(state._checked, len(kept))
            if not self._goes_on(done, attempt) or context.spent.stop is not None:
                return self._failure(done, attempt)
            logger.info("attempt %d of node %r failed: %s", attempt, self.wrapped_node.name, done.error)
            if heard is not None:
                await heard.take_back()
            lesson = self._tell(done, attempt, state)
            await clock.sleep(self.backoff_factor * 2 ** (attempt - 1))

    def _goes_on(self, done: NodeResult, attempt: int) -> bool:
        return attempt <= self.max_retries and not isinstance(done.cause, ConfigurationError)

    def _tell(self, done: NodeResult, attempt: int, state: GraphState) -> dict[str, Any] | None:
        state.context.update(
            _retry_attempt=attempt, _retry_error=done.error, _retry_node=getattr(self.wrapped_node, "name", "")
        )
        if done.cause is not None and not isinstance(done.cause, OutputSchemaError):
            # The model could do nothing about it, and the text may hold what it must not see.
            return None
        lesson = {
            "iteration": state.iteration,
            "mistake": f"The last attempt failed: {done.error}.",
            "correction": TRY_ANOTHER_WAY,
            "confidence": 1.0,
            "stage": "retry",
        }
        state.reflections.append(lesson)
        return lesson

    def _success(self, done: NodeResult, attempt: int) -> NodeResult:
        result = NodeResult(self.name, self.node_type, output=done.output, raw_output=done.raw_output)
        result.next_node = done.next_node
        result.transition_reason = f"attempt {attempt}"
        result.messages_added = list(done.messages_added)
        return result

    def _failure(self, done: NodeResult, attempt: int) -> NodeResult:
        times = "1 attempt" if attempt == 1 else f"{attempt} attempts"
        error = f"node {done.node_name!r} failed after {times}: {done.error}"
        result = NodeResult(self.name, self.node_type, raw_output=done.raw_output, error=error)
        if done.cause is not None:
            result.blame(done.cause)
        return result

    def targets(self) -> dict[str, str]:
        """Return the nodes that this node or the wrapped one leads to."""
        inner = self.wrapped_node.targets() if callable(getattr(self.wrapped_node, "targets", None)) else {}
        return {**{key: name for key, name in inner.items() if not key.startswith("transition")}, **super().targets()}


class _Heard:
    """Passes the events of one attempt on, and can declare the text among them void."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._calls: dict[tuple[str, str], Restarted] = {}

    async def __call__(self, event: RunEvent) -> None:
        if isinstance(event, TextDelta):
            void = self._calls.get((event.path, event.call_id))
            if void is None:
                void = Restarted(event.node, event.call_id, "", run_id=event.run_id, path=event.path)
                self._calls[event.path, event.call_id] = void
            void.dropped += event.text
        elif isinstance(event, Restarted):
            self._calls.pop((event.path, event.call_id), None)
        await self._emit(event)

    async def take_back(self) -> None:
        """Tell the listener to drop what it was shown, the newest first."""
        for void in reversed(self._calls.values()):
            await self._emit(void)


def _forget(lesson: dict[str, Any] | None, state: GraphState) -> None:
    if lesson is not None:
        state.reflections = [seen for seen in state.reflections if seen is not lesson]
