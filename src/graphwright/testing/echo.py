"""A model that tries every tool once, with arguments made from the tool's own schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from graphwright._internal.jsonio import dumps
from graphwright.messages import text_of
from graphwright.models.base import ModelRequest
from graphwright.testing.examples import NoExampleError, example_of
from graphwright.testing.scripted import ScriptedModel
from graphwright.testing.steps import ScriptedCall, Step, calls_many, says
from graphwright.types import ToolSpec

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

__all__ = ["EchoToolsModel"]


class EchoToolsModel(ScriptedModel):
    """Calls each tool that it is offered once a user turn, then answers with a list of the results.

    The arguments are the smallest that fit the tool's schema, the same every time. It decides by the messages alone,
    so one object serves any number of runs.
    """

    def __init__(
        self,
        *,
        parallel: bool = False,
        arguments: Mapping[str, Mapping[str, Any]] | None = None,
        strict: bool = True,
        name: str = "echo-tools",
    ) -> None:
        """Make the model.

        Args:
            parallel: Whether all tools are called in one turn; otherwise one a turn.
            arguments: Arguments to use for a tool, by its name, instead of made ones.
            strict: Whether each request has to be one that a strict provider accepts.
            name: The model's name.
        """
        super().__init__(strict=strict, name=name)
        self.parallel = parallel
        self._arguments = {tool: dict(args) for tool, args in (arguments or {}).items()}

    async def _step_for(self, request: ModelRequest) -> Step:
        turn = _this_turn(request.messages)
        called = {call["name"] for message in turn for call in getattr(message, "tool_calls", ())}
        # A long turn may be shown shortened, with its earlier calls in a note before the question.
        noted = "\n".join(text_of(message) for message in request.messages if message not in turn)
        open_tools = [spec for spec in _callable(request) if spec.name not in called and f"] {spec.name}(" not in noted]
        if not open_tools:
            return says(_listed(turn))
        now = open_tools if self.parallel else open_tools[:1]
        return calls_many(*(ScriptedCall(name=spec.name, args=self._args_for(spec)) for spec in now))

    def _args_for(self, spec: ToolSpec) -> dict[str, Any]:
        if spec.name in self._arguments:
            return dict(self._arguments[spec.name])
        try:
            made = example_of({"type": "object", **spec.parameters})
        except NoExampleError as error:
            raise NoExampleError(f"tool {spec.name!r}: {error} as arguments={{{spec.name!r}: {{...}}}}") from error
        if not isinstance(made, dict):
            raise NoExampleError(f"tool {spec.name!r}: its parameters describe {made!r}, which is no object")
        return made


def _callable(request: ModelRequest) -> list[ToolSpec]:
    if request.tool_choice == "none":
        return []
    if request.tool_choice in ("auto", "required"):
        return list(request.tools)
    return [spec for spec in request.tools if spec.name == request.tool_choice]


def _this_turn(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    start = max((index for index, message in enumerate(messages) if message.type == "human"), default=-1)
    return list(messages[start + 1 :])


def _listed(turn: list[BaseMessage]) -> str:
    results = {cast("ToolMessage", message).tool_call_id: message for message in turn if message.type == "tool"}
    lines = []
    for message in turn:
        for call in cast("AIMessage", message).tool_calls if message.type == "ai" else ():
            result = results.get(str(call["id"]))
            lines.append(f"- {call['name']}({dumps(call['args'])}): {text_of(result) if result is not None else ''}")
    return "\n".join(["I called every tool:", *lines]) if lines else "There is no tool that I could call."
