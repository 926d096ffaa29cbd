"""Show what a node would send to its model, without asking it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.engine._children import copy_state
from graphwright.engine.execution import PromptGraphEngine
from graphwright.engine.graph import PromptGraph
from graphwright.engine.hooks import Hooks
from graphwright.engine.state import GraphState
from graphwright.exceptions import ConfigurationError, ModelError
from graphwright.messages import AIMessage, as_messages, text_of
from graphwright.models import as_model
from graphwright.models.base import ChatModel, ModelCapabilities, ModelRequest

__all__ = ["PromptView", "inspect_prompt"]


@dataclass(frozen=True, slots=True)
class PromptView:
    """What a node would send. `str()` of it is a text for people."""

    node: str
    model: str
    messages: list[Any] = field(default_factory=list)
    """The messages as the model would get them, the system message first."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the model would be offered."""
    tool_choice: str = "auto"
    output_schema: str = ""
    """Name of the schema that is handed to the model itself; empty where the prompt asks for it in words."""

    @property
    def system(self) -> str:
        """The system text, or an empty string."""
        return "\n\n".join(text_of(message) for message in self.messages if message.type == "system")

    def __str__(self) -> str:
        head = f"node {self.node!r} -> model {self.model!r}"
        if self.tools:
            head += f"\ntools: {', '.join(self.tools)} (choice: {self.tool_choice})"
        if self.output_schema:
            head += f"\noutput schema: {self.output_schema}"
        return "\n\n".join([head, *(_shown(message) for message in self.messages)])


async def inspect_prompt(
    node: Any,
    input: Any,
    *,
    engine: PromptGraphEngine | None = None,
    model: Any = None,
    tools: Iterable[Any] | None = None,
    instructions: str = "",
    context: Mapping[str, Any] | None = None,
) -> PromptView:
    """Return the first request that `node` would make, down to the last message. No model is asked.

    `input` is a `GraphState`, which is copied, or a conversation as `ainvoke` takes it. With `engine`, `node` may be
    a name, and everything is as that engine has it; without one, `model`, `tools` and `instructions` stand for it.
    The node's preprocessor runs; hooks do not. Where the input still owes tool results, their tools are run.

    Raises:
        ConfigurationError: the node has no model, or makes no request.
    """
    node, engine = _resolve(node, engine, model, tools, instructions)
    override = getattr(node, "model_override", None)
    asked = engine.model if override is None else as_model(override)
    if asked is None:
        raise ConfigurationError(f"node {node.name!r} has no model; give model=, or an engine with one")
    recorder = _Recorder(asked)
    twin = copy(node)
    if override is not None:
        twin.model_override = recorder
    state, config = _visit_of(engine, node.name, input, context or {}, recorder)
    try:
        await twin.execute(state, config)
    except Exception:  # the recorder ends the visit by raising, and a node may wrap what it raises
        if recorder.request is None:
            raise
    if recorder.request is None:
        raise ConfigurationError(f"node {node.name!r} makes no model request for this input; it has no prompt to show")
    return _view(node.name, recorder.request, recorder.name)


def _resolve(
    node: Any, engine: PromptGraphEngine | None, model: Any, tools: Iterable[Any] | None, instructions: str
) -> tuple[Any, PromptGraphEngine]:
    """Return the node itself, and the engine that it is looked at in."""
    if engine is None:
        if isinstance(node, str):
            raise ConfigurationError(f"node {node!r} is given by name; give engine= as well")
        graph = PromptGraph("inspected", nodes=[node])
        engine = PromptGraphEngine(graph, model, tools=tools, instructions=instructions)
    elif model is not None or tools or instructions:
        raise ConfigurationError(
            "engine= brings its model, tools and instructions; leave yours out, or leave out engine="
        )
    elif isinstance(node, str):
        node = engine.graph.get_node(node)
    return node, engine


def _visit_of(
    engine: PromptGraphEngine, name: str, input: Any, context: Mapping[str, Any], model: _Recorder
) -> tuple[GraphState, Any]:
    """Return the state and the config with which the engine would visit a node, on `model` and without hooks."""
    held = copy_state(input) if isinstance(input, GraphState) else None
    messages = held.messages if held is not None else as_messages(input)
    run = engine._begin(messages, dict(context), None, None, None, None, None)
    run.context.model, run.context.hooks, run.context.prepared = model, Hooks(), {}
    if held is None:
        held = run.state
    else:
        held.context.update(context)
        held.graph = run.state.graph
    held.current_node = name
    return held, run.config


class _Recorder:
    """Stands in for a model, keeps the first request, and answers none."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.request: ModelRequest | None = None

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def capabilities(self) -> ModelCapabilities:
        return self._model.capabilities

    async def complete(self, request: ModelRequest) -> AIMessage:
        if self.request is None:
            self.request = request
        raise ModelError("the prompt was only looked at; no model was asked")


def _view(node: str, request: ModelRequest, model: str) -> PromptView:
    return PromptView(
        node,
        model,
        list(request.messages),
        tuple(spec.name for spec in request.tools),
        str(request.tool_choice),
        request.output_schema.__name__ if request.output_schema is not None else "",
    )


def _shown(message: Any) -> str:
    lines = [f"[{message.type}]", text_of(message)]
    lines += [f"-> {call['name']}({dumps(call['args'])})" for call in getattr(message, "tool_calls", ())]
    return "\n".join(line for line in lines if line)
