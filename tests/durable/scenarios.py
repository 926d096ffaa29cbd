"""Runs to be killed: each is built anew for every leg, from a script that depends on nothing but the conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

from graphwright.agent import Agent
from graphwright.engine import BaseNode, NodeFlag, NodeResult, PromptGraph, PromptNode
from graphwright.engine.edges import END
from graphwright.engine.execution import PromptGraphEngine
from graphwright.engine.interrupt import interrupt, once
from graphwright.engine.nodes import (
    AutonomousNode,
    HumanNode,
    LoopNode,
    ParallelNode,
    RouterNode,
    SubgraphNode,
    ToolNode,
)
from graphwright.messages import AIMessage, text_of
from graphwright.runtime import Durability
from graphwright.testing import ScriptedModel
from graphwright.testing.crash import AgentScenario, World
from graphwright.tools import FunctionTool
from graphwright.tools.base import GatedCall, Verdict

Turn = Sequence[tuple[str, dict[str, Any]]]


def scripted(
    turns: Sequence[Turn], answer: str = '{"color": "done"}', name: str = "m"
) -> Callable[[list[Any]], AIMessage]:
    """Return a model's script: the turns, one after another since the last user message, then the answer."""

    def reply(messages: list[Any]) -> AIMessage:
        replies = sum(message.type == "ai" and bool(message.tool_calls) for message in messages)
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        told = " ".join(text_of(message) for message in messages)
        if '"next_node"' in told:
            return AIMessage('{"next_node": "tell"}', usage_metadata=usage)
        if "Choose the route" in told:
            return AIMessage("work", usage_metadata=usage)
        if replies >= len(turns):
            return AIMessage(answer, usage_metadata=usage)
        calls = [
            {"name": tool, "args": args, "id": f"m_{replies}_{place}"}
            for place, (tool, args) in enumerate(turns[replies])
        ]
        return AIMessage("", tool_calls=calls, usage_metadata=usage)

    return reply


def tools_of(world: World) -> list[FunctionTool]:
    """Return the tools of every scenario; each has one effect on the world."""

    async def pay(n: int) -> str:
        """Pay."""
        world.effect("pay")
        return f"paid {n}"

    async def put(n: int) -> str:
        """Put, as often as one likes."""
        world.effect("put", idempotent=True)
        return f"put {n}"

    async def risky(n: int) -> str:
        """Need an approval."""
        world.effect("risky")
        return f"risked {n}"

    async def ask(n: int) -> str:
        """Ask a person, then act once."""
        said = await interrupt("color", {"n": n})
        return str(await once("act", lambda: _act(n, said)))

    def _act(n: int, said: Any) -> str:
        world.effect("ask")
        return f"asked {n}: {said}"

    made = [FunctionTool(function) for function in (pay, put, risky, ask)]
    made[1].idempotent = True
    made[3].reenterable = True
    return made


class AskForRisky:
    """A gate that lets a person decide on the calls of one tool."""

    async def judge(self, gated: GatedCall) -> Verdict:
        return Verdict("ask" if gated.call.name == "risky" else "allow", reason="it is risky", standing=False)


def answer(item: Any) -> Any:
    """Answer whatever is asked."""
    return f"blue {item.value['n']}" if item.kind == "color" else True


def agent_of(log: Any, world: World, pattern: Any, turns: Sequence[Turn], **options: Any) -> Any:
    """Build an agent whose model follows `turns`."""
    model = world.model(ScriptedModel.answering(scripted(turns)))
    engine = PromptGraphEngine(pattern, model, gate=AskForRisky(), **options)
    return Agent(engine, durability=Durability(log=log))


def one_node(name: str, node: BaseNode) -> PromptGraph:
    """Return a graph that is one node."""
    graph = PromptGraph(name, nodes=[node])
    graph.set_entry(node.name)
    return graph


def simple(turns: Sequence[Turn], shape: str = "plain") -> AgentScenario:
    """Return the scenario of an agent that makes `turns`, in a graph of the given shape."""
    return AgentScenario(lambda log, world: agent_of(log, world, shaped(shape, world), turns), "go", answer)


def shaped(shape: str, world: World) -> Any:
    """Return a graph in which a model has the tools: alone, inside another graph, side by side, or in a loop."""
    tools = tools_of(world)

    def worker(name: str, **options: Any) -> PromptNode:
        return PromptNode(name, tools=tools, **options)

    if shape == "plain":
        return one_node("g", worker("work"))
    if shape == "compaction":
        return one_node("g", worker("work", auto_ledger_after=1))
    if shape == "subgraph":
        inner = one_node("inner", worker("work"))
        return one_node("g", SubgraphNode("sub", subgraph=inner))
    if shape == "fresh subgraph":
        inner = one_node("inner", worker("work"))
        return one_node("g", SubgraphNode("sub", subgraph=inner, inherit_state=False))
    if shape == "parallel":
        return one_node("g", ParallelNode("both", nodes=[worker("a"), worker("b")]))
    if shape == "loop":
        return one_node("g", LoopNode("again", body_node=worker("work"), max_loop_iterations=2))
    if shape == "human":
        return in_order(HumanNode("first"), worker("work"), HumanNode("last"))
    if shape == "requires a human":
        return one_node("g", worker("work", flags={NodeFlag.REQUIRES_HUMAN}))
    if shape == "router":
        return in_order(RouterNode("route", routes={"work": "work", "stop": END}), worker("work"))
    if shape == "together":
        return in_order(*(worker(name, flags={NodeFlag.PARALLEL_SAFE}) for name in "ab"), PromptNode("close"))
    if shape == "autonomous":
        pool = [worker("work", is_entry=True), PromptNode("tell", is_terminal=True)]
        return one_node("g", AutonomousNode("auto", node_pool=pool))
    if shape == "structured":
        return one_node("g", worker("work", output_schema=Color))
    if shape == "tool node":
        chosen = ToolNode("act", tools=tools, tool_selector=lambda state: ("pay", {"n": 7}))
        return in_order(chosen, worker("work"))
    assert shape == "own node"
    return in_order(Confirm("confirm"), worker("work"))


SHAPES = (
    "plain",
    "compaction",
    "subgraph",
    "fresh subgraph",
    "parallel",
    "loop",
    "human",
    "requires a human",
    "router",
    "together",
    "autonomous",
    "structured",
    "tool node",
    "own node",
)


class Color(BaseModel):
    """What a model answers in the structured scenario."""

    color: str


class Confirm(BaseNode):
    """A node that asks twice and has no effect."""

    reenterable = True

    async def execute(self, state: Any, config: Any) -> NodeResult:
        said = [await interrupt("color", {"n": n}) for n in range(2)]
        return NodeResult(self.name, "confirm", output=" and ".join(said))


def in_order(*nodes: Any) -> PromptGraph:
    """Return a graph of nodes that follow each other."""
    graph = PromptGraph("g", nodes=list(nodes))
    graph.set_entry(nodes[0].name)
    for one, other in pairwise(nodes):
        graph.always(one.name, other.name)
    graph.always(nodes[-1].name, END)
    return graph


booking = simple([[("pay", {"n": 1}), ("ask", {"n": 2})], [("risky", {"n": 3}), ("put", {"n": 4})]])
