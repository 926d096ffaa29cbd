"""Log every node: that it starts, and how it ended."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.engine.state import GraphState, NodeResult

__all__ = ["LoggingHook"]

logger = logging.getLogger("graphwright.engine.hooks")


class LoggingHook:
    """Writes a line when a node starts and one when it ends, to the logger `graphwright.engine.hooks`.

    No text of the conversation is logged; of a failure, what the result says.
    """

    def __init__(self, level: int | str = logging.INFO) -> None:
        """Log at `level`, a number or a name of the `logging` module. Failures are logged as warnings at least.

        Raises:
            ConfigurationError: there is no level of that name.
        """
        number = logging.getLevelNamesMapping().get(level.upper()) if isinstance(level, str) else level
        if not isinstance(number, int):
            raise ConfigurationError(f"level {level!r} is no logging level; use one such as 'INFO' or logging.INFO")
        self.level = number

    async def pre_node(self, node: Any, state: GraphState) -> None:
        """Log that a node starts."""
        if logger.isEnabledFor(self.level):
            logger.log(self.level, "node %r starts, visit %d", node.name, state.node_iterations.get(node.name, 1))

    async def post_node(self, node: Any, result: NodeResult, state: GraphState) -> None:
        """Log how a node ended: milliseconds, tokens, tool calls, and the error if there is one."""
        level = self.level if result.error is None else max(self.level, logging.WARNING)
        if not logger.isEnabledFor(level):
            return
        figures = f"{result.duration_ms:.1f} ms, {result.total_tokens} tokens, {len(result.tool_calls)} tool calls"
        if result.error is None:
            logger.log(level, "node %r ended: %s", node.name, figures)
        else:
            logger.log(level, "node %r ended with an error: %s (%s)", node.name, result.error, figures)
