"""The base of reasoning nodes that answer in fields: read leniently, kept in the context, never taken for the reply."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel

from graphwright._internal.jsonio import dumps
from graphwright.engine.base import context_of
from graphwright.engine.reasoning_nodes._asides import AsideNode, with_emit, without_text
from graphwright.engine.reasoning_nodes._reading import share, truth
from graphwright.engine.state import GraphState, NodeResult

__all__ = ["StructuredNode", "complete_active"]

ROUTES = "Set `route` to one of: {routes}."


class StructuredNode(AsideNode):
    """A prompt node whose answer is a dict of fields under its `output_key`.

    The fields are no message: the conversation stays between the user and the nodes that answer. When such a node
    ends a run in which nobody has answered, its fields are the reply, as JSON.
    """

    reenterable = True

    own_schema: ClassVar[type[BaseModel]]

    def __init__(self, name: str, **options: Any) -> None:
        """Configure the node; all keywords of `PromptNode` are taken."""
        if options.get("output_schema") is None:
            options["output_schema"] = self.own_schema
        routes = [key for key in options.get("transitions") or () if key != "error"]
        if "route" in self.own_schema.model_fields and len(routes) > 1:
            self._extra = ROUTES.format(routes=", ".join(routes))
        super().__init__(name, **options)

    def take(self, fields: dict[str, Any], state: GraphState, result: NodeResult) -> None:
        """Act on the fields of an answer: bring the state up to date, choose the way on."""

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Run one visit; a listener sees its events without the text of the fields."""
        emit = context_of(config).emit
        return await super().execute(state, config if emit is None else with_emit(config, without_text(emit)))

    def _add_answer(self, message: Any, state: GraphState, result: NodeResult) -> None:
        fields = result.output
        if isinstance(fields, dict):
            for key in ("confidence", "severity"):
                if fields.get(key) is not None:
                    fields[key] = share(fields[key])
            self._match_route(fields)
            self.take(fields, state, result)
        result.raw_output = result.raw_output or dumps(fields)
        state.context[f"{self.name}_output"] = result.raw_output
        if self.output_key:
            state.context[self.output_key] = fields

    def _match_route(self, fields: dict[str, Any]) -> None:
        route = fields.get("route")
        if isinstance(route, str) and route not in self.transitions:
            word = route.strip().strip("'\"`.").lower()
            fields["route"] = next((key for key in self.transitions if key.lower() == word), route)


def complete_active(fields: dict[str, Any], state: GraphState) -> None:
    """Complete the active subgoal of the plan when the fields say that it is reached."""
    if truth(fields.get("subgoal_complete")):
        state.complete_subgoal(state.active_subgoal or "")
