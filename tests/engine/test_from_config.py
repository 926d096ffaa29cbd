"""Graphs and nodes as data: brought back whole, or refused by name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from graphwright.engine import (
    ContextCompaction,
    EdgeCondition,
    GuardNode,
    HumanNode,
    LoopNode,
    ParallelNode,
    PromptGraph,
    PromptGraphEngine,
    PromptNode,
    RouterNode,
    SubgraphNode,
    ToolNode,
    TransformNode,
    node_from_config,
    node_to_config,
    parse_condition,
)
from graphwright.engine.from_config import dump_graph, load_graph
from graphwright.engine.nodes import AutonomousNode
from graphwright.engine.reasoning_nodes import (
    CritiqueNode,
    FanOutNode,
    JustifyNode,
    ObserveNode,
    PlanNode,
    ReflectNode,
    RetryNode,
    SynthesizeNode,
    ThinkNode,
    ValidateNode,
)
from graphwright.exceptions import ConfigurationError, GraphSerializationError
from graphwright.testing import ScriptedModel, says

HERE = [f"{__name__}:*"]


class Report(BaseModel):
    title: str


def shout(state: Any) -> str:
    return "HELLO"


def is_long(value: Any) -> bool:
    return len(str(value)) > 3


ASK = PromptNode("ask", instructions="Ask.", temperature=0.0, max_tokens=9, output_key="out", input_keys=["a"])
NODES = [
    PromptNode("p"),
    PromptNode("p", description="", inject_tools=True, is_entry=True, flags=["verbose"], tool_choice="none"),
    PromptNode("p", output_retries=0, context_scope="ledger", auto_ledger_after=2),
    PromptNode("p", output_schema=Report, compaction=ContextCompaction(after_tool_results=3), blocks=["Be brief."]),
    PromptNode("p", transitions={"yes": "a", "error": "b"}, metadata={"n": [1, 2.5, None, {"k": True}]}),
    PromptNode("p", model_override="openai:gpt-5", include_plan=False, context_layers={"facts": 3}),
    ToolNode("t", max_result_chars=None, deduplicate=False),
    RouterNode("r", routes={"a": "x", "b": "__end__"}),
    GuardNode("g", guards=[is_long], on_fail="x"),
    HumanNode("h", prompt_template="Do {it}?", timeout=5, on_deny="x"),
    TransformNode("t", transform=shout, output_key="loud"),
    ParallelNode("p", nodes=[ASK, ToolNode("t")], max_concurrency=2),
    LoopNode("l", body_node=ASK, condition=is_long, max_loop_iterations=2),
    SubgraphNode("s", subgraph=PromptGraph("in", nodes=[ASK]).set_entry("ask"), inherit_state=False),
    AutonomousNode("a", node_pool=[ASK, PromptNode("b")], max_steps=3, terminal_nodes=["b"]),
    ThinkNode("n", focus_areas=["cost"]),
    PlanNode("n", max_subgoals=2, instructions="Plan well."),
    ReflectNode("n"),
    ObserveNode("n", instructions="Look."),
    JustifyNode("n"),
    CritiqueNode("n", severity_threshold=0.9),
    ValidateNode("n", criteria="Is it true?", on_fail="x"),
    SynthesizeNode("n", instructions="Sum up."),
    RetryNode("n", ASK, max_retries=1),
    FanOutNode("n", branches=[(ASK, {"a": 1})]),
]


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_every_kind_of_node_comes_back_from_its_config(node: Any) -> None:
    written = json.loads(json.dumps(node_to_config(node, allow_imports=HERE)))

    twin = node_from_config(written, allow_imports=HERE)

    assert type(twin) is type(node)
    assert node_to_config(twin, allow_imports=HERE) == written
    plain = {
        key: value
        for key, value in vars(node).items()
        if isinstance(value, (str, int, float, frozenset, dict)) and not key.startswith("_")
    }
    assert {key: vars(twin)[key] for key in plain} == plain


def graph_of_everything() -> PromptGraph:
    nodes = [PromptNode("a"), PromptNode("b"), PromptNode("c"), PromptNode("d", is_terminal=True)]
    graph = PromptGraph("all", nodes=nodes).set_entry("a")
    graph.always("a", "b").on_error("a", "d").on_output("b", "c", "kind", "bug").on_confidence("b", "d", 0.9)
    graph.add_edge("b", "d", condition=parse_condition('kind == "x" and n > 2'), label="lots", priority=4)
    return graph.loop_until("c", "d", condition=EdgeCondition("output", key="done", value=1), max_iterations=2)


@pytest.mark.parametrize("format", ["json", "yaml"])
def test_a_graph_comes_back_from_its_text_as_it_was(format: Any, tmp_path: Path) -> None:
    graph = graph_of_everything()
    file = tmp_path / "graph"
    file.write_text(dump_graph(graph, format=format), encoding="utf-8")

    twin = load_graph(file)

    assert twin.to_config() == graph.to_config() == load_graph(file.read_text(encoding="utf-8")).to_config()
    assert (twin.name, twin.mode, twin.entry) == ("all", "static", "a")
    assert twin.loop_limit("c") == graph.loop_limit("c")
    assert [(e.from_node, e.to_node, e.label, e.priority) for e in twin.edges] == [
        (e.from_node, e.to_node, e.label, e.priority) for e in graph.edges
    ]
    assert [e.condition for e in twin.edges] == [e.condition for e in graph.edges]
    condition = twin.edges[-2].condition
    assert isinstance(condition, EdgeCondition)
    assert type(condition.value) is int


async def test_a_graph_made_from_data_runs() -> None:
    graph = PromptGraph.from_config(
        {
            "schema_version": 1,
            "entry": "a",
            "nodes": [{"name": "a"}, {"name": "b"}],
            "edges": [{"from": "a", "to": "b", "condition": 'raw_output contains "one"'}],
        }
    )

    result = await PromptGraphEngine(graph, ScriptedModel([says("one"), says("two")])).ainvoke("go")

    assert [message.content for message in result["messages"]] == ["go", "one", "two"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"schema_version": 2}, "schema_version"),
        ({"schema_version": True}, "schema_version"),
        ({"nodez": []}, "nodez"),
        ({"mode": "wild"}, "wild"),
        ({"entry": "zzz"}, "zzz"),
        ({"nodes": {}}, "'nodes'"),
        ({"nodes": ["a"]}, "'a'"),
        ({"nodes": [{"type": "prompt"}]}, "no 'name'"),
        ({"nodes": [{"name": "a"}, {"name": "a"}]}, "two nodes"),
        ({"nodes": [{"name": "a", "type": "evil"}]}, "'evil'"),
        ({"nodes": [{"name": "a", "type": ["prompt"]}]}, "unknown"),
        ({"nodes": [{"name": "a", "colour": 1}]}, "colour"),
        ({"nodes": [{"name": "a", "flags": ["nope"]}]}, "nope"),
        ({"nodes": [{"name": "a", "max_iterations": "x"}]}, "cannot be made"),
        ({"nodes": [{"name": "a", "metadata": {"x": {"$evil": 1}}}]}, "$evil"),
        ({"nodes": [{"name": "a", "metadata": {"x": {"$import": "os:getcwd"}}}]}, "os:getcwd"),
        ({"edges": [{"from": "a", "to": "a", "when": "x"}]}, "when"),
        ({"edges": [{"from": "a"}]}, "needs texts"),
        ({"edges": [{"from": "a", "to": "a", "condition": "x.__class__ == 1"}]}, "'__'"),
        ({"edges": [{"from": "a", "to": "a", "condition": "9**9**9"}]}, "cannot be read"),
        ({"edges": [{"from": "a", "to": "a", "condition": {"kind": "evil"}}]}, "evil"),
        ({"edges": [{"from": "a", "to": "a", "condition": {"$import": "os:getcwd"}}]}, "os:getcwd"),
        ({"loops": {"a": {"max_iterations": 0, "exit_to": "a"}}}, "at least 1"),
        ({"loops": {"zzz": {"max_iterations": 1, "exit_to": "a"}}}, "zzz"),
    ],
)
def test_data_that_describes_no_graph_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    config = {"schema_version": 1, "entry": "a", "nodes": [{"name": "a"}], **change}
    with pytest.raises((ConfigurationError, KeyError)) as caught:
        PromptGraph.from_config(config)
    assert named in str(caught.value)


def test_loading_imports_nothing_that_is_not_allowed() -> None:
    sys.modules.pop("this", None)
    config = {"name": "t", "type": "transform", "transform": {"$import": "this:d"}}

    with pytest.raises(GraphSerializationError, match="'this:d', which is not allowed"):
        node_from_config(config)
    with pytest.raises(GraphSerializationError):
        node_from_config(config, allow_imports=["that:*", "this"])

    assert "this" not in sys.modules


@pytest.mark.parametrize("path", ["os", "os:path:join", "json:__name__", "json:loads.__globals__", 3])
def test_an_import_that_is_no_plain_path_is_refused_whatever_is_allowed(path: Any) -> None:
    with pytest.raises(ConfigurationError, match="without '__'"):
        node_from_config({"name": "t", "type": "transform", "transform": {"$import": path}}, allow_imports=["*"])


@pytest.mark.parametrize(
    ("node", "named"),
    [
        (TransformNode("t", transform=lambda state: 1), "transform"),
        (TransformNode("t", transform=shout), "allow_imports"),
        (PromptNode("t", tools=[shout]), "tools"),
        (PromptNode("t", metadata={"x": object()}), "metadata.x"),
        (PromptNode("t", metadata={"x": float("nan")}), "metadata.x"),
        (PromptNode("t", metadata={"$node": 1}), "'$node'"),
        (PromptNode("t", metadata={"x": (1, 2)}), "metadata"),
    ],
)
def test_what_data_cannot_hold_is_refused_by_name(node: Any, named: str) -> None:
    with pytest.raises(GraphSerializationError) as caught:
        node_to_config(node)
    assert named in str(caught.value)
    assert "'t'" in str(caught.value)


def test_a_node_of_the_users_own_class_is_refused() -> None:
    class Mine(PromptNode):
        pass

    with pytest.raises(GraphSerializationError, match="Mine"):
        PromptGraph(nodes=[Mine("m")]).to_config()


def test_what_was_set_past_the_constructor_is_refused() -> None:
    node = PromptNode("n")
    node.extra_secret = 1  # type: ignore[attr-defined]

    with pytest.raises(GraphSerializationError, match="extra_secret"):
        node_to_config(node)


def test_a_condition_that_is_code_is_written_only_where_allowed() -> None:
    graph = PromptGraph("g", nodes=[PromptNode("a"), PromptNode("b")]).when("a", "b", is_long)

    with pytest.raises(GraphSerializationError, match="'a' -> 'b'"):
        graph.to_config()
    twin = PromptGraph.from_config(graph.to_config(allow_imports=HERE), allow_imports=HERE)

    assert twin.edges[0].condition is is_long


@pytest.mark.parametrize(
    "text",
    ["{", "a: [", "[]", "", "x: &a [1]\ny: *a", "!!python/object/apply:os.getcwd []", '{"a": ' * 5000],
)
def test_a_text_that_is_no_graph_is_a_configuration_error(text: str) -> None:
    with pytest.raises(ConfigurationError):
        load_graph(text)
