"""Hooks: objects that watch the boundaries of nodes, tools and graph changes, and the dispatcher that calls them.

`None` from any hook means unchanged. Raising in `pre_node` or `pre_tool` is a veto: the node fails, or the call is
answered as an error. Raising anywhere else is logged once for each hook and method, and stops neither the other
hooks nor the run; in `on_graph_mutation` it also blocks the change.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from graphwright._internal.aio import call_maybe_async as _call
from graphwright.engine.edges import END
from graphwright.engine.state import GraphMutation, GraphState, NodeResult
from graphwright.exceptions import ConfigurationError, GraphStoppedError

if TYPE_CHECKING:
    from graphwright.engine.base import BaseNode

__all__ = ["Hook", "Hooks"]

logger = logging.getLogger(__name__)

_METHODS = (
    "pre_node",
    "post_node",
    "pre_tool",
    "post_tool",
    "on_error",
    "on_graph_mutation",
    "on_tool_reused",
)


class Hook(Protocol):
    """The methods that a hook may have. All are optional: write a plain class with the ones you need."""

    async def pre_node(self, node: BaseNode, state: GraphState) -> GraphState | None:
        """Called before a node runs; may change the state. Raising fails the node.

        Setting `state.current_node` to another node's name runs that one instead, to `"__end__"` ends the run.
        """
        ...

    async def post_node(self, node: BaseNode, result: NodeResult, state: GraphState) -> NodeResult | None:
        """Called after a node ran; may change or replace the result, and redirect like `pre_node`."""
        ...

    async def pre_tool(self, tool_name: str, args: dict[str, Any], state: GraphState) -> dict[str, Any] | None:
        """Called before a tool runs; may change the arguments. Raising blocks the call."""
        ...

    async def post_tool(self, tool_name: str, result: Any, args: dict[str, Any], state: GraphState) -> Any:
        """Called after a tool ran; may replace what the model, the history and the metrics see."""
        ...

    async def on_error(self, node: BaseNode, error: BaseException, state: GraphState) -> str | None:
        """Called when a node failed. The name of a node, or `"__end__"`, redirects the run there."""
        ...

    async def on_graph_mutation(self, mutation: GraphMutation, state: GraphState) -> bool | None:
        """Called before the graph of the run is changed. `False` blocks the change."""
        ...

    async def on_tool_reused(self, tool_name: str, args: dict[str, Any], result: Any, state: GraphState) -> None:
        """Called in place of `pre_tool` and `post_tool` when a call is answered from an earlier result."""
        ...


class Hooks:
    """The hooks of an engine. Which methods each one has is looked up once."""

    __slots__ = (
        "_logged",
        "all",
        "on_error",
        "on_graph_mutation",
        "on_tool_reused",
        "post_node",
        "post_tool",
        "pre_node",
        "pre_tool",
    )

    def __init__(self, hooks: Iterable[Any] = ()) -> None:
        self.all = tuple(hooks)
        self._logged: set[tuple[int, str]] = set()
        for hook in self.all:
            if isinstance(hook, type):
                raise ConfigurationError(f"hook {hook!r} is a class; give an instance: {hook.__name__}()")
            if not any(callable(getattr(hook, method, None)) for method in _METHODS):
                raise ConfigurationError(f"hook {hook!r} has none of the methods {', '.join(_METHODS)}")
        for method in _METHODS:
            setattr(self, method, tuple(hook for hook in self.all if callable(getattr(hook, method, None))))

    pre_node: tuple[Any, ...]
    post_node: tuple[Any, ...]
    pre_tool: tuple[Any, ...]
    post_tool: tuple[Any, ...]
    on_error: tuple[Any, ...]
    on_graph_mutation: tuple[Any, ...]
    on_tool_reused: tuple[Any, ...]

    def check_engine(self, graph: Any, model: Any) -> None:
        """Let each hook that has a `check_engine(graph, model)` refuse the engine that it is given to.

        Raises:
            ConfigurationError: a hook cannot do its work there.
        """
        for hook in self.all:
            if callable(check := getattr(hook, "check_engine", None)):
                check(graph, model)

    async def before_node(self, node: Any, state: GraphState) -> str | None:
        """Call `pre_node` of each hook; return the class name of the one that redirected the run, if any.

        Raises:
            Exception: whatever a hook raised, as its veto.
        """
        for hook in self.pre_node:
            changed = await _call(hook.pre_node, node, state)
            if isinstance(changed, GraphState) and changed is not state:
                state.__dict__.update(changed.__dict__)
            if state.current_node != node.name:
                return type(hook).__name__
        return None

    async def after_node(self, node: Any, result: NodeResult, state: GraphState) -> tuple[NodeResult, str | None]:
        """Call `post_node` of each hook; return the result, and the class name of the first that redirected."""
        redirected_by = None
        for hook in self.post_node:
            changed = await self._safely(hook, "post_node", node, result, state)
            if isinstance(changed, NodeResult):
                result = changed
            if redirected_by is None and state.current_node != node.name:
                redirected_by = type(hook).__name__
        return result, redirected_by

    async def before_tool(self, name: str, args: dict[str, Any], state: GraphState) -> dict[str, Any]:
        """Call `pre_tool` of each hook and return the arguments to run with."""
        for hook in self.pre_tool:
            changed = await _call(hook.pre_tool, name, args, state)
            if changed is not None:
                args = changed
        return args

    async def after_tool(self, name: str, result: Any, args: dict[str, Any], state: GraphState) -> Any:
        """Call `post_tool` of each hook and return the result to show."""
        for hook in self.post_tool:
            changed = await self._safely(hook, "post_tool", name, result, args, state)
            if changed is not None:
                result = changed
        return result

    async def redirect_on_error(self, node: Any, error: BaseException, state: GraphState) -> str | None:
        """Call `on_error` of each hook and return the first node name that exists, or `"__end__"`."""
        chosen = None
        for hook in self.on_error:
            name = await self._safely(hook, "on_error", node, error, state)
            if chosen is None and isinstance(name, str):
                if name == END or state.graph.has_node(name):
                    chosen = name
                else:
                    self._log_once(hook, "on_error", f"returned {name!r}, which is no node; it is ignored")
        return chosen

    async def refuses_mutation(self, mutation: GraphMutation, state: GraphState) -> str | None:
        """Call `on_graph_mutation` of each hook; return why the change is blocked, or `None`."""
        for hook in self.on_graph_mutation:
            try:
                allowed = await _call(hook.on_graph_mutation, mutation, state)
            except Exception as error:  # a check that cannot run refuses
                self._log_once(hook, "on_graph_mutation", "raised; the change is blocked", error)
                return f"{type(hook).__name__} raised {type(error).__name__}"
            if allowed is False:
                return f"blocked by {type(hook).__name__}"
        return None

    def stop_error(self, hook_name: str) -> type[GraphStoppedError]:
        """Return what a run raises that the hook of this class name ended before there was an answer."""
        for hook in self.all:
            if type(hook).__name__ == hook_name:
                return getattr(hook, "stop_error", GraphStoppedError)
        return GraphStoppedError

    async def tool_reused(self, name: str, args: dict[str, Any], result: Any, state: GraphState) -> None:
        """Call `on_tool_reused` of each hook."""
        for hook in self.on_tool_reused:
            await self._safely(hook, "on_tool_reused", name, args, result, state)

    async def _safely(self, hook: Any, method: str, *args: Any) -> Any:
        try:
            return await _call(getattr(hook, method), *args)
        except Exception as error:  # an observer never changes the run
            self._log_once(hook, method, "raised; the run goes on", error)
            return None

    def _log_once(self, hook: Any, method: str, what: str, error: BaseException | None = None) -> None:
        key = (id(hook), method)
        if key not in self._logged:
            self._logged.add(key)
            shown = f" ({type(error).__name__})" if error is not None else ""
            logger.warning("%s.%s %s%s; told once", type(hook).__name__, method, what, shown, exc_info=None)
            if error is not None:
                logger.debug("%s.%s", type(hook).__name__, method, exc_info=error)
