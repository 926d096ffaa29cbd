"""The node that lets a model choose one of several ways."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from graphwright._internal.jsonio import find_json
from graphwright.engine.base import BaseNode, NodeContext, context_of
from graphwright.engine.nodes._asking import ask_model, model_of
from graphwright.engine.nodes._model_call import provider_view
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError
from graphwright.messages import HumanMessage, SystemMessage

__all__ = ["RouterNode"]

CHOOSE = (
    "Choose the route that fits the conversation above:\n{routes}\nAnswer with the name of one route and nothing else."
)
NO_ROUTE = "That is none of the routes. Answer with exactly one of these names and nothing else: {names}"

_ROUTE_KEYS = ("route", "_next", "next_step", "goto", "next_node")
_FENCE = re.compile(r"\A```\w*\s*\n(.*?)\n?\s*```\Z", re.DOTALL)


class RouterNode(BaseNode):
    """Asks a model, without tools, which of its routes to take.

    The exchange with the model is no part of the conversation. A reply that names no route is asked for once more;
    then `default_next` is taken, and without one the node fails.
    """

    node_type = "router"
    reenterable = True
    may_mutate = False

    def __init__(
        self,
        name: str,
        *,
        routes: Mapping[str, str] | None = None,
        context_blocks: Iterable[Any] | None = None,
        model_override: Any = None,
        **base: Any,
    ) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well.

        `routes` maps the names that the model chooses from to the nodes they lead to. `context_blocks` are texts, or
        objects with `render(context)`, that the model reads before it chooses.
        """
        super().__init__(name, **base)
        if not isinstance(routes, Mapping) or not routes:
            raise ConfigurationError(f"routes of node {name!r} is {routes!r}; give a dict of route name -> node name")
        self.routes: dict[str, str] = dict(routes)
        self.context_blocks = list(context_blocks or ())
        self.model_override = model_override

    def targets(self) -> dict[str, str]:
        """Return what leads on from here, the routes included."""
        return {**super().targets(), **{f"route {route!r}": target for route, target in self.routes.items()}}

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Ask the model to choose a route."""
        context = context_of(config)
        result = NodeResult(self.name, "router")
        route = await self._choose(state, context, result)
        if route is not None:
            result.output = route
            result.next_node = self.routes[route]
            result.transition_reason = f"route {route!r}"
            state.context[f"{self.name}_output"] = route
        elif self.default_next is not None:
            result.next_node = self.default_next
            result.transition_reason = "no route matched"
        else:
            result.error = (
                f"the model named none of the routes {', '.join(map(repr, self.routes))}, it said "
                f"{_short(result.raw_output)}; give default_next for that case"
            )
        return result

    async def _choose(self, state: GraphState, context: NodeContext, result: NodeResult) -> str | None:
        model = model_of(self, self.model_override, context)
        view = [*provider_view(self._system(state), state), HumanMessage(content=self._menu(state))]
        reply = await ask_model(self, model, view, context, result)
        result.raw_output = reply.text
        route = _match_route(reply.text, self.routes)
        if route is not None:
            return route
        if reply.text and not reply.calls:
            view.append(reply.message)
        view.append(HumanMessage(content=NO_ROUTE.format(names=", ".join(self.routes))))
        reply = await ask_model(self, model, view, context, result)
        result.raw_output = reply.text
        return _match_route(reply.text, self.routes)

    def _system(self, state: GraphState) -> SystemMessage | None:
        parts = [self.instructions]
        parts += [b if isinstance(b, str) else str(b.render(state.context) or "") for b in self.context_blocks]
        text = "\n\n".join(part for part in parts if part)
        return SystemMessage(content=text) if text else None

    def _menu(self, state: GraphState) -> str:
        lines = []
        for route, target in self.routes.items():
            known = state.graph is not None and state.graph.has_node(target)
            about = getattr(state.graph.get_node(target), "description", "") if known else ""
            lines.append(f"- {route}: {about}" if about else f"- {route}")
        return CHOOSE.format(routes="\n".join(lines))


def _match_route(reply: str, routes: Iterable[str]) -> str | None:
    """Return the route that a reply names: as its whole text, or as a value of a JSON object in it."""
    names = list(routes)
    text = reply.strip()
    fenced = _FENCE.match(text)
    found = _named(fenced[1].strip() if fenced else text, names)
    if found is not None:
        return found
    for value in reversed(find_json(text)):
        if not isinstance(value, dict):
            continue
        for key in _ROUTE_KEYS:
            if isinstance(value.get(key), str) and (found := _named(value[key], names)) is not None:
                return found
        others = {_named(said, names) for said in value.values() if isinstance(said, str)} - {None}
        if len(others) == 1:
            return others.pop()
    return None


def _named(text: str, names: list[str]) -> str | None:
    if text in names:
        return text
    bare = text.strip().strip("`'\"*.").strip()
    if bare in names:
        return bare
    alike = [name for name in names if name.casefold() == bare.casefold()]
    return alike[0] if len(alike) == 1 else None


def _short(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:197] + "...")
