"""The graph of a bot, and how it is described to a UI."""

from __future__ import annotations

from typing import Any

from graphwright.engine.base import BaseNode
from graphwright.engine.edges import END
from graphwright.engine.graph import PromptGraph
from graphwright.orchestrator._setup import BotSetup
from graphwright.orchestrator.nodes import AgentNode, AskUserNode, OutputGuardNode, PlanNode, ToolsNode, VerifyNode

__all__ = ["bot_nodes", "connect", "edges", "topology"]

_START = "__start__"
_ORDER = ("tools", "plan", "ask_user", "verify", "output_guard")


def bot_nodes(setup: BotSetup) -> list[BaseNode]:
    """Return the nodes that the setup asks for, the agent first."""
    wanted = {
        "tools": ToolsNode,
        "plan": PlanNode if setup.planning else None,
        "ask_user": AskUserNode if setup.questions else None,
        "verify": VerifyNode if setup.verification else None,
        "output_guard": OutputGuardNode if setup.output_guards else None,
    }
    return [AgentNode(setup), *(make(setup) for name in _ORDER if (make := wanted[name]) is not None)]


def connect(graph: PromptGraph, names: list[str]) -> None:
    """Declare every way that the nodes can take; which one is taken they say themselves."""
    for edge in edges(names):
        if edge["source"] != _START:
            graph.add_edge(edge["source"], edge["target"])


def edges(names: list[str]) -> list[dict[str, Any]]:
    """Return the edges between the nodes, in the order in which a UI is told of them."""
    there = [name for name in _ORDER if name in names]
    found = [_edge(_START, "agent", conditional=False)]
    found += [_edge("agent", name, conditional=True) for name in there]
    found.append(_edge("agent", END, conditional=True))
    found.append(_edge("tools", "agent", conditional=False))
    if "plan" in names:
        found += [_edge("plan", name, conditional=True) for name in ("agent", "tools", "ask_user") if name in names]
    if "ask_user" in names:
        found.append(_edge("ask_user", "agent", conditional=False))
    if "verify" in names:
        onward = "output_guard" if "output_guard" in names else END
        found += [_edge("verify", onward, conditional=True), _edge("verify", "agent", conditional=True)]
    if "output_guard" in names:
        found += [_edge("output_guard", END, conditional=True), _edge("output_guard", "agent", conditional=True)]
    return found


def topology(names: list[str]) -> dict[str, Any]:
    """Return the payload that describes the graph."""
    there = ["agent", *(name for name in _ORDER if name in names)]
    return {"entry": "agent", "nodes": [_START, *there, END], "edges": edges(names)}


def _edge(source: str, target: str, *, conditional: bool) -> dict[str, Any]:
    return {"source": source, "target": target, "conditional": conditional}
