"""The ingredients of a prompt node's system text, in the order in which the model reads them.

What never changes comes first, so that a provider can keep the longest possible prefix in its cache. Each ingredient
is one function that returns its text, or an empty string to leave itself out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphwright._internal.jsonio import dumps
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError
from graphwright.prompts.blocks import BlockSet

if TYPE_CHECKING:
    from graphwright.engine.nodes._binding import Binding
    from graphwright.engine.nodes.prompt import PromptNode

__all__ = ["STATIC", "is_static", "system_text"]

_SHOWN_OBSERVATIONS = 5
_SHOWN_REFLECTIONS = 3
_SHOWN_CHARS = 2000

ANSWER_BY_TOOL = "When you have the final answer, call {tool} with it. Do not write it as text."
ANSWER_AS_JSON = "Answer with one JSON object that fits this JSON schema, and nothing else:\n{schema}"
ACTION_REFUSED = "Your last `_graph_action` was refused: {reason}"
ROUTE_BY_WORD = "End with a JSON object whose `route` field is one of: {routes}."


def system_text(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    """Return the whole system text of one visit, and note in `result` what went into it."""
    parts = [part for make in _PARTS if (part := make(node, binding, state, result))]
    text = "\n\n".join(parts)
    return _framed(node, text, state, result)


def is_static(node: PromptNode) -> bool:
    """Return whether the text is the same in every visit, as far as the node's configuration goes."""
    return not (
        node.input_keys
        or node.inherit_context_from
        or node.context_layers
        or node.blocks
        or node.strategy
        or node.perspective
    )


def _instructions(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    return "\n\n".join(text for text in (binding.instructions, node.instructions) if text)


def _tool_summary(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    return binding.tool_summary


def _answer_form(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    if binding.answer_tool:
        return ANSWER_BY_TOOL.format(tool=binding.answer_tool)
    if binding.schema is not None and not binding.schema_is_native:
        return ANSWER_AS_JSON.format(schema=dumps(binding.schema.json_schema))
    return ""


def _routing(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    routes = [key for key in node.transitions if key != "error"]
    if len(routes) < 2 or binding.tools or binding.schema is not None:
        return ""
    return ROUTE_BY_WORD.format(routes=", ".join(routes))


def _blocks(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    shown = []
    for block in node.blocks:
        if isinstance(block, BlockSet):
            selection = block.select(state.context)
            text = selection.text
            result.blocks_used.extend(selection.used)
            result.blocks_dropped.extend(selection.dropped)
        else:
            text = block if isinstance(block, str) else str(block.render(state.context) or "")
            if text:
                result.blocks_used.append(getattr(block, "name", None) or type(block).__name__)
        if text:
            shown.append(text)
    return "\n\n".join(shown)


def _input_data(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    lines = [f"{key}: {_shown(state.context[key])}" for key in node.input_keys if key in state.context]
    return "Input data:\n" + "\n".join(lines) if lines else ""


def _inherited(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    source = node.inherit_context_from
    if not source or f"{source}_output" not in state.context:
        return ""
    return f"Output of the step {source!r}:\n{_shown(state.context[f'{source}_output'])}"


def _layers(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    ordered = sorted(node.context_layers.items(), key=lambda layer: -layer[1])
    return "\n\n".join(f"{name}:\n{_shown(state.context[name])}" for name, _ in ordered if name in state.context)


def _observations(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    if not node.include_observations or not state.observations or binding.tools:
        return ""
    lines = [
        f"- {seen['tool']}({dumps(seen['args'])}) = {_cut(_shown(seen['result']))}"
        for seen in state.observations[-_SHOWN_OBSERVATIONS:]
    ]
    return "Recent tool results:\n" + "\n".join(lines)


def _plan(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    if not node.include_plan or not state.plan:
        return ""
    active = state.active_subgoal
    marks = ["✓" if goal in state.completed else "→" if goal == active else "·" for goal in state.plan]
    return "Plan:\n" + "\n".join(f"{mark} {goal}" for mark, goal in zip(marks, state.plan, strict=True))


def _reflections(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    if not node.include_reflections or not state.reflections:
        return ""
    lines = [f"- {seen['mistake']} Better: {seen['correction']}" for seen in state.reflections[-_SHOWN_REFLECTIONS:]]
    return "Lessons so far:\n" + "\n".join(lines)


def _refused_action(node: PromptNode, binding: Binding, state: GraphState, result: NodeResult) -> str:
    refusal = state.context.pop("_graph_action_refused", None)
    return ACTION_REFUSED.format(reason=refusal) if refusal else ""


Ingredient = Callable[["PromptNode", "Binding", GraphState, NodeResult], str]

STATIC: tuple[Ingredient, ...] = (_instructions, _tool_summary, _answer_form, _routing)
"""The ingredients that depend on the node's configuration alone."""

_PARTS: tuple[Ingredient, ...] = (
    *STATIC,
    _blocks,
    _input_data,
    _inherited,
    _layers,
    _observations,
    _plan,
    _reflections,
    _refused_action,
)


def _framed(node: PromptNode, text: str, state: GraphState, result: NodeResult) -> str:
    if node.strategy is not None:
        text = node.strategy.wrap(text, state.context)
        result.strategy_applied = type(node.strategy).__name__
    if node.perspective is not None:
        result.perspective_applied = type(node.perspective).__name__
        if callable(getattr(node.perspective, "apply", None)):
            text = node.perspective.apply(text, state.context)
        elif isinstance(getattr(node.perspective, "framing", None), str):
            text = f"{node.perspective.framing}\n\n{text}"
        else:
            raise ConfigurationError(
                f"perspective {node.perspective!r} of node {node.name!r} has neither "
                "apply(text, context) nor a framing text"
            )
    return text


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return dumps(value) if isinstance(value, (Mapping, list, tuple)) else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}... ({len(text)} characters)"
