"""What a prompt node works out once for an engine: its tools, the form of its answer, its fixed system text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphwright.engine.answer_schema import AnswerSchema, EarlyAnswer
from graphwright.engine.base import NodeContext
from graphwright.engine.compaction import ContextCompaction
from graphwright.engine.state import GraphState, NodeFlag, NodeResult
from graphwright.exceptions import ConfigurationError
from graphwright.messages import SystemMessage
from graphwright.models import as_model
from graphwright.tools import ToolSet, as_tools
from graphwright.types import ToolSpec

if TYPE_CHECKING:
    from graphwright.engine.compaction.reuse import ReusedResults
    from graphwright.engine.compaction.view import ContextView
    from graphwright.engine.nodes._tool_offer import ToolOffer
    from graphwright.engine.nodes.prompt import PromptNode
    from graphwright.models.base import ChatModel

__all__ = ["Binding", "NodeRun", "begin_late_view", "begin_run", "binding_of"]

_ANSWER_TOOL = "final_answer"
_DESCRIPTION_CHARS = 120
_MOST_PREPARED = 1000


@dataclass(slots=True)
class Binding:
    """The fixed part of a node under one engine."""

    model: ChatModel
    tools: ToolSet
    callable_tools: ToolSet
    """The tools, and a stand-in for the one by which the model answers."""
    specs: tuple[ToolSpec, ...]
    """What the model is offered: the tools, and the one by which it answers, if there is one."""
    schema: AnswerSchema | None = None
    schema_is_native: bool = False
    answer_tool: str = ""
    instructions: str = ""
    """Those of the engine, which come before the node's own."""
    tool_summary: str = ""
    system: SystemMessage | None = None
    """The system message, when it is the same in every visit."""
    system_is_fixed: bool = False
    verbose: bool = False
    compaction: ContextCompaction | None = None
    """How the view of a long tool loop is compacted; `None` shows the whole conversation."""


@dataclass(slots=True)
class NodeRun:
    """What a node keeps for one run."""

    binding: Binding
    tool_run: Any = None
    system: SystemMessage | None = None
    """The system message of the visits that belong together: those of one tool loop."""
    system_kept: bool = False
    """Whether the log has that system message."""
    looping: bool = False
    """True between the visits of one tool loop."""
    tools_used: bool = False
    """True when the loop has made a call: a forced tool choice is then met."""
    corrections: int = 0
    """How often the model was told that its answer does not fit the schema, in this loop."""
    view: ContextView | None = None
    """What is shown of the conversation, in a node that compacts."""
    reuse: ReusedResults | None = None
    """The results that repeated calls get, in a node that reuses some."""
    offer: ToolOffer | None = None
    """Which of its tools the node offers, in a run that is not told of all of them."""
    has_offer: bool = False
    """Whether it was looked at which ones these are."""


def begin_run(node: PromptNode, context: NodeContext, state: GraphState) -> NodeRun:
    """Return what `node` keeps for this run."""
    run = NodeRun(binding_of(node, context))
    settings = run.binding.compaction
    if settings is not None and (state.tool_calls_made or not _starts_late(node, settings)):
        from graphwright.engine.compaction.reuse import ReusedResults
        from graphwright.engine.compaction.view import ContextView

        run.view = ContextView(settings, node.context_scope, node.name)
        if settings.reuse_results:
            run.reuse = ReusedResults(settings)
    return run


def begin_late_view(node: PromptNode, run: NodeRun, state: GraphState) -> None:
    """Make the view of a tool loop once there is one: a run without tool calls needs none."""
    from graphwright.engine.compaction.view import ContextView

    assert run.binding.compaction is not None
    run.view = ContextView.late(run.binding.compaction, node.name, state)


def _starts_late(node: PromptNode, settings: ContextCompaction) -> bool:
    bounded = settings.max_tokens is not None or settings.max_result_chars is not None
    return node.context_scope == "auto" and not bounded and not settings.reuse_results


def binding_of(node: PromptNode, context: NodeContext) -> Binding:
    """Return the binding of `node` for the engine behind `context`, made at the first visit."""
    prepared = context.prepared
    try:
        binding: Binding = prepared[node]
    except KeyError:
        if len(prepared) >= _MOST_PREPARED:
            # Nodes that runs add to their own graphs would gather here for ever.
            prepared.clear()
        binding = prepared[node] = _bind(node, context)
    return binding


def _bind(node: PromptNode, context: NodeContext) -> Binding:
    from graphwright.engine.nodes._prompt_parts import STATIC, is_static

    model = as_model(node.model_override) if node.model_override is not None else context.model_for(node)
    if model is None:
        raise ConfigurationError(f"node {node.name!r} needs a model; give one to the engine or as model_override=")
    tools = node.tools.merged(context.tools) if node.inject_tools else node.tools
    if tools and not model.capabilities.tools:
        raise ConfigurationError(f"model {model.name!r} of node {node.name!r} takes no tools; give another model")
    _check_choice(node, tools)
    instructions = context.instructions if node.inherit_instructions else ""
    binding = Binding(model, tools, tools, tools.specs, instructions=instructions)
    if node.output_schema is not None:
        _bind_schema(node, binding)
    if context.tool_selector is not None and not context.tool_selector.selects_from(tools):
        answering = (binding.specs[-1],) if binding.answer_tool else ()
        binding.specs = (*context.tool_selector.offer(tools), *answering)
    binding.verbose = NodeFlag.VERBOSE in node.flags
    binding.compaction = _compaction(node, context, model)
    binding.tool_summary = _summary(tools, node.tool_summary or context.tool_summary)
    if is_static(node):
        nothing = GraphState.of_run([], {}, None)
        parts = [text for part in STATIC if (text := part(node, binding, nothing, NodeResult()))]
        binding.system = SystemMessage(content="\n\n".join(parts)) if parts else None
        binding.system_is_fixed = True
    return binding


def _compaction(node: PromptNode, context: NodeContext, model: ChatModel) -> ContextCompaction | None:
    if node.context_scope == "full":
        return None
    settings = node.compaction if node.compaction is not None else context.compaction
    if settings is None:
        settings = ContextCompaction()
    if not settings.enabled:
        return None
    if node.auto_ledger_after is not None:
        settings = replace(settings, after_tool_results=node.auto_ledger_after)
    counter = getattr(model, "count_tokens", None)
    if settings.count_tokens is None and callable(counter):
        settings = replace(settings, count_tokens=counter)
    return settings


def _bind_schema(node: PromptNode, binding: Binding) -> None:
    schema = binding.schema = AnswerSchema(node.output_schema)
    capabilities = binding.model.capabilities
    if capabilities.structured_output:
        binding.schema_is_native = True
    elif capabilities.tools:
        name = _ANSWER_TOOL
        while name in binding.tools:
            name += "_"
        binding.answer_tool = name
        spec = ToolSpec(name=name, description=schema.description, parameters=schema.json_schema)
        binding.callable_tools = binding.tools.merged(as_tools([EarlyAnswer(spec)]))
        binding.specs = binding.callable_tools.specs


def _check_choice(node: PromptNode, tools: ToolSet) -> None:
    choice = node.tool_choice
    if choice in ("auto", "none"):
        return
    if choice == "required":
        if not tools:
            raise ConfigurationError(f"node {node.name!r} has tool_choice='required' and no tools; give it tools")
    elif choice not in tools:
        known = ", ".join(tools.names) or "none"
        raise ConfigurationError(
            f"tool_choice {choice!r} of node {node.name!r} is none of its tools ({known}); "
            "give one of them, or 'auto', 'required' or 'none'"
        )


def _summary(tools: ToolSet, how: str) -> str:
    if how == "off" or not tools:
        return ""
    if how == "names":
        return f"Available tools: {', '.join(tools.names)}"
    lines = []
    for spec in tools.specs:
        parameters = ", ".join(spec.parameters.get("properties", {}))
        lines.append(f"- {spec.name}({parameters}): {spec.description[:_DESCRIPTION_CHARS]}".rstrip(": "))
    return "Available tools:\n" + "\n".join(lines)
