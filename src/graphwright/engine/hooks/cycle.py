"""End a run that goes in circles."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from graphwright.engine._transition import SAME_NODE
from graphwright.engine.edges import END
from graphwright.engine.hooks._memory import memory_of
from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.engine.state import GraphState

__all__ = ["CycleDetectionHook"]


class CycleDetectionHook:
    """Ends the run before it starts a sequence of nodes that it has just repeated too often.

    A node that runs again to see the results of its own tool calls is one visit. Graphs inside the graph, and the
    repetitions of a looping or retrying node, are watched by themselves.
    """

    def __init__(self, sequence_length: int = 3, max_repeats: int = 3) -> None:
        """Look for `sequence_length` nodes that were visited `max_repeats` times in a row.

        Raises:
            ConfigurationError: a number is too small.
        """
        if sequence_length < 1:
            raise ConfigurationError(f"sequence_length is {sequence_length!r}; give at least 1")
        if max_repeats < 2:
            raise ConfigurationError(f"max_repeats is {max_repeats!r}; a sequence repeats from 2 on")
        self.sequence_length = sequence_length
        self.max_repeats = max_repeats

    async def pre_node(self, node: Any, state: GraphState) -> None:
        """End the run in place of `node` when it would begin the sequence once more."""
        if _goes_on(node, state):
            return
        visits = self._visits(state)
        length = self.sequence_length
        if len(visits) == visits.maxlen and node.name == visits[0] and _repeats(visits, length):
            sequence = " -> ".join(list(visits)[:length])
            state._stop_reason = f"Cycle detected: {sequence} was repeated {self.max_repeats} times"
            state.current_node = END
            return
        visits.append(node.name)

    async def post_node(self, node: Any, result: Any, state: GraphState) -> None:
        """Do nothing: a cycle is seen before a node runs."""

    def _visits(self, state: GraphState) -> deque[str]:
        by_graph: WeakKeyDictionary[Any, deque[str]] = memory_of(self, state, WeakKeyDictionary)
        visits = by_graph.get(state.graph)
        if visits is None:
            visits = by_graph[state.graph] = deque(maxlen=self.sequence_length * self.max_repeats)
        return visits


def _goes_on(node: Any, state: GraphState) -> bool:
    """Return whether this visit belongs to the node's last one: a tool loop, or an answer that has to be corrected."""
    last = state.node_history[-1] if state.node_history else None
    return last is not None and last.node_name == node.name and last.transition_reason in SAME_NODE


def _repeats(visits: deque[str], length: int) -> bool:
    seen = list(visits)
    return all(name == seen[index % length] for index, name in enumerate(seen))
