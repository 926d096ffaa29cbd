"""The tools that a node offers its model in one run, when it has more than a model should be told of.

They are chosen once, from what the user asks, and then only grow: what the model was told of its tools stays the
beginning of what it is told later. A run that goes on later reads the choice in its log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphwright.engine.base import NodeContext
from graphwright.engine.state import GraphState
from graphwright.exceptions import ToolArgumentError
from graphwright.messages import text_of
from graphwright.tools import ToolSet, argument_problems, get_tool_context
from graphwright.tools.base import Tool
from graphwright.types import ToolCall, ToolSpec

if TYPE_CHECKING:
    from graphwright.engine.journal import Journal
    from graphwright.engine.nodes._binding import Binding
    from graphwright.engine.nodes.prompt import PromptNode
    from graphwright.tools.base import ToolSelection

__all__ = ["MORE_TOOLS", "MoreTools", "ToolOffer", "offer_tools"]

MORE_TOOLS = "request_more_tools"
_MOST_NAMED = 32
_MOST_OFFERED = 100
_MOST_SOURCES = 40
_SHOWN_CHARS = 120


async def offer_tools(node: PromptNode, binding: Binding, context: NodeContext, state: GraphState) -> ToolOffer | None:
    """Return the tools to offer in this run; `None` when the node offers all that it has."""
    selector = context.tool_selector
    if selector is None or not selector.selects_from(binding.tools):
        return None
    offer = ToolOffer(binding, selector, context.journal, f"{context.outer_frame}{node.name}/tools")
    if not offer.recall():
        request, earlier = _asked(state.messages, selector.context_turns)
        if node.instructions:
            earlier.append(node.instructions)
        called = _called(state.messages)
        keep = {name for name in (*called, node.tool_choice) if name in binding.tools}
        chosen = await selector.select(request, binding.tools, earlier=earlier, keep=keep)
        offer.grow("", chosen.names)
    return offer


class ToolOffer:
    """What one node offers in one run. It only grows."""

    __slots__ = ("_binding", "_fixed", "_frame", "_grown", "_journal", "_names", "callable_tools", "selector", "specs")

    def __init__(self, binding: Binding, selector: ToolSelection, journal: Journal | None, frame: str) -> None:
        self.selector = selector
        self._binding = binding
        self._journal = journal
        self._frame = frame
        self._names: dict[str, None] = {}
        self._grown: dict[str, tuple[str, ...]] = {}
        self.callable_tools = binding.callable_tools
        """What runs when it is called: every tool, for what is offered is no matter of who may do what."""
        fixed = [binding.callable_tools.get(binding.answer_tool)] if binding.answer_tool else []
        if selector.has_fallback:
            more = MoreTools(self, binding.tools)
            self.callable_tools = binding.callable_tools.merged(ToolSet([more]))
            fixed.append(more)
        self._fixed = tuple(tool.spec for tool in fixed if tool is not None)
        self.specs: tuple[ToolSpec, ...] = self._fixed
        """What the model is told."""

    @property
    def tools(self) -> ToolSet:
        """All that could be offered."""
        return self._binding.tools

    @property
    def names(self) -> tuple[str, ...]:
        """What is offered so far."""
        return tuple(self._names)

    def recall(self) -> bool:
        """Take up what an earlier leg of the run offered; return whether there was one."""
        rows = self._journal.found_in("once", self._frame) if self._journal is not None else {}
        for key, data in rows.items():
            self._add(key, tuple(data["tools"]))
        return bool(rows)

    def grown(self, key: str) -> tuple[str, ...] | None:
        """Return what an earlier leg of the run added under a key."""
        return self._grown.get(key) if self._journal is not None else None

    def grow(self, key: str, names: Sequence[str]) -> None:
        """Offer more from the next model call on, and keep that for later legs of the run."""
        if self._journal is not None:
            self._journal.put("once", self._frame, key, {"tools": list(names)})
        self._add(key, tuple(names))

    def _add(self, key: str, names: tuple[str, ...]) -> None:
        self._grown[key] = names
        self._names.update(dict.fromkeys(names))
        # A tool may be gone since an earlier leg of the run.
        offered = [tool for name in self._names if (tool := self.tools.get(name)) is not None]
        self.specs = (*self._fixed, *self.selector.offer(offered))


class MoreTools(Tool):
    """The tool by which a model asks for more tools, in one run of one node."""

    idempotent = True
    risk_level = 0

    def __init__(self, offer: ToolOffer, tools: ToolSet) -> None:
        self._offer = offer
        name = MORE_TOOLS
        while name in tools:
            name += "_"
        sources = list(dict.fromkeys(tool.source for tool in tools if tool.source))
        there = f" There are tools of: {', '.join(sources[:_MOST_SOURCES])}." if sources else ""
        self.spec = ToolSpec(
            name=name,
            description=(
                f"Get more tools: {len(tools)} exist, and only those that seemed to fit are offered. Call this when "
                "none of your tools does what is needed, before you say that you cannot do it. Say in `query` what a "
                "tool should do, or give exact `tool_names`. What it lists can be called from the next step on."
                f"{there}"
            ),
            parameters={
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What the tool should do, in English"},
                    "tool_names": {"type": "array", "items": {"type": "string"}},
                },
            },
        )

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments, when they ask for something."""
        given = {key: value for key, value in args.items() if value is not None}
        problems = argument_problems(self.spec.parameters, given)
        query, names = given.get("query", ""), given.get("tool_names", [])
        if not problems and not names and not query.strip():
            problems = ["query: say what the tool should do"]
        if problems:
            raise ToolArgumentError(self.name, problems)
        return {"query": query, "tool_names": names[:_MOST_NAMED]}

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> str:
        """Offer more tools and say which."""
        offer = self._offer
        # Not the call's id: a provider may give the same one again in a later turn.
        key = get_tool_context().idempotency_key
        names = offer.grown(key)
        if names is None:
            wanted = [name for name in args["tool_names"] if name in offer.tools]
            if args["query"].strip():
                found = await offer.selector.more(args["query"], offer.tools, {*offer.names, *wanted})
                wanted += found.names
            new = [name for name in dict.fromkeys(wanted) if name not in offer.names]
            there = [name for name in dict.fromkeys(wanted) if name in offer.names]
            names = (*there, *new[: max(0, _MOST_OFFERED - len(offer.names))])
            offer.grow(key, names)
        return self._told(names, [name for name in args["tool_names"] if name not in offer.tools])

    def _told(self, names: Sequence[str], unknown: Sequence[str]) -> str:
        parts = []
        if names:
            lines = [_line(tool.spec) for name in names if (tool := self._offer.tools.get(name)) is not None]
            parts.append("You can call these from the next step on:\n" + "\n".join(lines))
        if unknown:
            parts.append(f"There is no tool named {', '.join(map(repr, unknown))}.")
        if not names:
            parts.append("Nothing more was found. Ask in other words, or go on with the tools that you have.")
        return "\n".join(parts)


def _line(spec: ToolSpec) -> str:
    parameters = ", ".join(spec.parameters.get("properties") or {})
    text = " ".join(spec.description.split())
    return f"- {spec.name}({parameters}): {text[:_SHOWN_CHARS]}".rstrip(": ")


def _asked(messages: Sequence[Any], turns: int) -> tuple[str, list[str]]:
    """Return the latest text of the user, and the ones before it, the latest first."""
    texts = [text for message in reversed(messages) if message.type == "human" and (text := text_of(message).strip())]
    return (texts[0] if texts else ""), texts[1:turns]


def _called(messages: Sequence[Any]) -> set[str]:
    """Return the tools that the conversation has called since the last user turn but one."""
    found: set[str] = set()
    turns = 0
    for message in reversed(messages):
        if message.type == "human":
            turns += 1
            if turns == 2:
                break
        elif message.type == "ai":
            found.update(call["name"] for call in message.tool_calls)
    return found
