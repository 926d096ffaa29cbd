"""What a run knows: the state and its records, the caller, and the arithmetic of usage."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from graphwright.caller import CallerContext, calling_as, get_current_caller, get_current_session_id
from graphwright.engine.state import ExecutionReport, GraphMutation, GraphState, NodeEvent, NodeFlag, NodeResult
from graphwright.exceptions import ConfigurationError
from graphwright.messages import problem_in, text_of
from graphwright.usage import Usage

NODE_RESULT_DEFAULTS: dict[str, Any] = {
    "node_name": "",
    "node_type": "",
    "iteration": 0,
    "duration_ms": 0.0,
    "llm_duration_ms": 0.0,
    "tool_duration_ms": 0.0,
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "total_tokens": 0,
    "tool_calls": [],
    "tool_calls_deduplicated": 0,
    "tool_calls_failed": 0,
    "output": None,
    "raw_output": "",
    "next_node": None,
    "transition_reason": "",
    "messages_added": [],
    "blocks_used": [],
    "blocks_dropped": [],
    "strategy_applied": None,
    "perspective_applied": None,
    "guards_passed": [],
    "guards_failed": [],
    "guard_retries": 0,
    "graph_mutations": [],
    "error": None,
    "error_recovered": False,
}
LISTS = [name for name, value in NODE_RESULT_DEFAULTS.items() if value == []]
FULL = {
    name: ["x"] if value == [] else (f"a {name}" if isinstance(value, str) or value is None else type(value)(3))
    for name, value in NODE_RESULT_DEFAULTS.items()
}


def test_a_node_result_has_its_27_fields_in_order_with_their_defaults() -> None:
    result = NodeResult()

    assert [field.name for field in dataclasses.fields(NodeResult)] == list(NODE_RESULT_DEFAULTS)
    assert len(NODE_RESULT_DEFAULTS) == 27
    assert {name: getattr(result, name) for name in NODE_RESULT_DEFAULTS} == NODE_RESULT_DEFAULTS
    assert dataclasses.asdict(NodeResult()) == NODE_RESULT_DEFAULTS


@pytest.mark.parametrize("name", list(NODE_RESULT_DEFAULTS))
def test_each_field_of_a_node_result_can_be_given_and_set(name: str) -> None:
    given = NodeResult(**{name: FULL[name]})
    set_later = NodeResult()
    setattr(set_later, name, FULL[name])

    assert getattr(given, name) == FULL[name]
    assert given == set_later
    assert given != NodeResult()


def test_the_fields_can_be_given_by_place() -> None:
    assert dataclasses.asdict(NodeResult(*FULL.values())) == FULL


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_a_node_result_can_be_appended_to_and_is_nobody_elses(name: str) -> None:
    one, two = NodeResult(), NodeResult()

    getattr(one, name).append("x")

    assert getattr(one, name) == ["x"]
    assert getattr(one, name) is getattr(one, name)
    assert getattr(two, name) == []
    mine = ["given"]
    assert getattr(NodeResult(**{name: mine}), name) is mine


def test_a_node_result_that_nobody_reads_leaves_no_lists_to_the_collector() -> None:
    result = NodeResult("a")

    assert [value for value in gc.get_referents(result) if isinstance(value, list)] == []
    assert not hasattr(result, "__dict__")
    with pytest.raises(AttributeError, match="no attribute 'tool_cals'"):
        result.tool_cals  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError):
        result.tool_cals = []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        dataclasses.replace,
        lambda result: pickle.loads(pickle.dumps(result)),
        lambda result: pickle.loads(pickle.dumps(result, protocol=2)),
    ],
    ids=["copy", "deepcopy", "replace", "pickle", "pickle2"],
)
@pytest.mark.parametrize(
    "result", [NodeResult(), NodeResult("a"), NodeResult(*FULL.values())], ids=["new", "a", "full"]
)
def test_a_node_result_can_be_copied_replaced_and_pickled(again: Any, result: NodeResult) -> None:
    made = again(result)

    assert made is not result
    assert made == result
    assert dataclasses.asdict(made) == dataclasses.asdict(result)


def test_a_deep_copy_of_a_node_result_shares_no_list() -> None:
    result = NodeResult(tool_calls=[{"name": "t"}])
    made = copy.deepcopy(result)

    made.tool_calls[0]["name"] = "changed"
    made.blocks_used.append("b")

    assert (result.tool_calls, result.blocks_used) == ([{"name": "t"}], [])


def test_equality_and_repr_do_not_depend_on_which_lists_were_read() -> None:
    read, unread = NodeResult("a"), NodeResult("a")
    assert read.tool_calls == []

    assert read == unread
    assert repr(read) == repr(unread)
    assert "node_name='a'" in repr(unread)
    assert "tool_calls=[]" in repr(unread)


def test_the_small_records_have_their_documented_defaults() -> None:
    before = time.monotonic()
    event = NodeEvent("on_custom")

    assert (event.event, event.node_name, event.data) == ("on_custom", "", {})
    assert before <= event.timestamp <= time.monotonic()
    assert NodeEvent("a").data is not NodeEvent("a").data
    assert dataclasses.asdict(GraphMutation("add_node")) == {
        "action": "add_node",
        "node_name": "",
        "node_config": {},
        "from_node": "",
        "to_node": "",
        "condition": "",
    }
    for record in (NodeEvent, GraphMutation):
        with pytest.raises(TypeError):
            record()


def test_there_are_18_flags_and_each_is_its_own_word() -> None:
    assert len(NodeFlag) == 18
    assert all(flag.value == flag.name.lower() for flag in NodeFlag)
    assert NodeFlag("retryable") is NodeFlag.RETRYABLE


def test_a_report_sums_up_in_a_few_lines() -> None:
    report = ExecutionReport(
        total_iterations=3,
        total_tokens=12345,
        total_duration_ms=1540.0,
        nodes_visited=["plan", "act"],
        tool_calls=2,
        graph_mutations=1,
        guards_passed=4,
        guards_failed=5,
    )

    lines = report.summary().splitlines()

    assert lines[2:] == [
        "Total iterations: 3",
        "Total tokens: 12,345",
        "Total duration: 1.5s",
        "Nodes visited: plan → act",
        "Tool calls: 2",
        "Graph mutations: 1",
        "Guards: 4 passed, 5 failed",
    ]
    assert set(lines[1]) == {"-"}
    failed = dataclasses.replace(report, error="no answer")
    assert failed.summary().splitlines() == [*lines, "Error: no answer"]


def test_a_state_starts_empty_and_shares_nothing() -> None:
    one, two = GraphState(), GraphState()

    assert dataclasses.asdict(one) == {
        "messages": [],
        "context": {},
        "current_node": "",
        "visited": [],
        "iteration": 0,
        "node_iterations": {},
        "graph": None,
        "plan": [],
        "completed": [],
        "observations": [],
        "reflections": [],
        "tool_calls_made": 0,
        "node_timings": {},
        "total_tokens": 0,
        "node_history": [],
        "turn_question": None,
        "turn_input": [],
        "max_messages": 200,
    }
    for name, value in vars(one).items():
        if isinstance(value, (list, dict)):
            assert value is not getattr(two, name)


def test_a_state_takes_messages_in_every_form_and_finds_the_question() -> None:
    messages = [
        ("system", "rules"),
        "first",
        {"role": "assistant", "content": "hi"},
        ("user", "second"),
        AIMessage("on it"),
    ]

    state = GraphState(messages)

    assert [(message.type, text_of(message)) for message in state.messages] == [
        ("system", "rules"),
        ("human", "first"),
        ("ai", "hi"),
        ("human", "second"),
        ("ai", "on it"),
    ]
    assert state.turn_question is state.messages[3]
    assert state.turn_input == state.messages[:4]
    assert "turn_question" not in repr(state)
    assert GraphState(["a", "b"], turn_question=messages[4]).turn_question is messages[4]


def test_a_state_refuses_what_is_no_message() -> None:
    with pytest.raises(ConfigurationError, match="5 of type int is no message"):
        GraphState(["fine", 5])


def test_subgoals_are_worked_off_in_the_order_of_the_plan() -> None:
    state = GraphState(plan=["a", "b"])
    assert (state.active_subgoal, state.all_subgoals_complete) == ("a", False)

    for subgoal in ("", "b", "b", "elsewhere"):
        state.complete_subgoal(subgoal)
    assert (state.active_subgoal, state.completed) == ("a", ["b", "elsewhere"])

    state.complete_subgoal("a")
    assert (state.active_subgoal, state.all_subgoals_complete) == (None, True)
    assert GraphState().all_subgoals_complete is False


def test_observations_count_calls_and_keep_the_newest_fifty() -> None:
    state = GraphState()
    for number in range(53):
        state.add_observation("t", number, {"n": number}, success=number % 2 == 0, duration_ms=1.5)
    state.add_observation("bare", "r")

    assert state.tool_calls_made == 54
    assert len(state.observations) == 50
    assert state.observations[0] == {"tool": "t", "result": 4, "args": {"n": 4}, "success": True, "duration_ms": 1.5}
    assert state.observations[-1] == {"tool": "bare", "result": "r", "args": {}, "success": True, "duration_ms": 0.0}


def test_the_newest_five_reflections_are_kept() -> None:
    state = GraphState()
    for number in range(7):
        state.add_reflection(number, "wrong", "right")
    state.add_reflection(9, "m", "c", confidence=0.9, stage="act")

    assert [entry["iteration"] for entry in state.reflections] == [3, 4, 5, 6, 9]
    assert state.reflections[0] == {
        "iteration": 3,
        "mistake": "wrong",
        "correction": "right",
        "confidence": 0.5,
        "stage": "",
    }
    assert state.reflections[-1]["stage"] == "act"


def test_visits_and_times_add_up_by_node() -> None:
    state = GraphState()

    assert [state.increment_node_iteration(name) for name in ("a", "b", "a")] == [1, 1, 2]
    for name, ms in (("a", 1.5), ("a", 2.0), ("b", 1.0)):
        state.record_node_timing(name, ms)

    assert state.node_iterations == {"a": 2, "b": 1}
    assert state.node_timings == {"a": 3.5, "b": 1.0}


@pytest.mark.parametrize("limit", range(1, 9))
def test_trimming_a_state_keeps_systems_question_and_whole_rounds(limit: int) -> None:
    calls = [{"name": "t", "args": {}, "id": call_id, "type": "tool_call"} for call_id in "xy"]
    rounds = [AIMessage("", tool_calls=calls), ToolMessage("1", tool_call_id="x"), ToolMessage("2", tool_call_id="y")]
    state = GraphState(
        [SystemMessage("rules"), HumanMessage("old"), *rounds, AIMessage("a"), HumanMessage("now"), *rounds],
        max_messages=limit,
    )

    state.trim_messages()

    assert problem_in(state.messages) is None
    assert [text_of(message) for message in state.messages if message.type == "system"] == ["rules"]
    assert any(message is state.turn_question for message in state.messages)
    assert text_of(state.turn_question) == "now"
    assert len(state.messages) <= max(2, limit)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_state_without_a_limit_is_not_trimmed(limit: int) -> None:
    state = GraphState(["a"] * 300, max_messages=limit)

    state.trim_messages()

    assert len(state.messages) == 300
    assert len(GraphState(["a"] * 300).messages) == 300


@pytest.mark.parametrize(
    ("caller", "key"),
    [
        (CallerContext(), None),
        (CallerContext("ann"), "ann"),
        (CallerContext("ann", "acme"), "acme::ann"),
        (CallerContext("a:b", "acme"), "acme::a:b"),
        (CallerContext("ann", ""), "ann"),
        (CallerContext(None, "acme"), None),
    ],
)
def test_callers_are_kept_apart_by_one_key(caller: CallerContext, key: str | None) -> None:
    assert caller.isolation_key == key


@pytest.mark.parametrize(
    ("user", "tenant", "message"),
    [("ann", "a:b", "tenant_id 'a:b'"), ("ann", "a::b", "tenant_id 'a::b'"), ("a::b", None, "user_id 'a::b'")],
)
def test_names_that_could_be_mistaken_for_another_callers_key_are_refused(
    user: str, tenant: str | None, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        CallerContext(user, tenant)


def test_no_two_different_callers_have_the_same_key() -> None:
    names = ["", "a", "b", ":", "a:", ":a", "a:b", "a::b", "::"]
    seen: dict[str, tuple[str, str | None]] = {}
    for user in names:
        for tenant in [None, *names]:
            try:
                caller = CallerContext(user, tenant)
            except ConfigurationError:
                continue
            key = caller.isolation_key
            assert key is not None
            owner = seen.setdefault(key, (user, tenant or None))
            assert owner == (user, tenant or None)


def test_a_caller_never_shows_its_token_and_owns_its_sets() -> None:
    roles = ["admin", "admin"]
    caller = CallerContext("ann", bearer_token="secret", roles=roles)  # type: ignore[arg-type]

    assert "secret" not in repr(caller)
    assert caller.roles == {"admin"}
    assert CallerContext().scopes is not CallerContext().scopes
    assert CallerContext().metadata is not CallerContext().metadata


def test_the_current_caller_and_session_hold_inside_the_block_only() -> None:
    ann, bob = CallerContext("ann"), CallerContext("bob")

    assert (get_current_caller(), get_current_session_id()) == (None, None)
    with calling_as(ann, session_id="s1"):
        with calling_as(bob):
            assert (get_current_caller(), get_current_session_id()) == (bob, "s1")
        with pytest.raises(KeyError), calling_as(None, session_id="s2"):
            assert (get_current_caller(), get_current_session_id()) == (ann, "s2")
            raise KeyError("x")
        assert (get_current_caller(), get_current_session_id()) == (ann, "s1")
    assert (get_current_caller(), get_current_session_id()) == (None, None)


def test_usage_adds_up_and_unknown_stays_unknown() -> None:
    total = Usage()
    total.add(Usage())
    assert total == Usage()

    total.add(Usage(10, 5, 15, cached_tokens=4))
    total.add(Usage(1, None, 1, reasoning_tokens=0))

    assert total == Usage(11, 5, 16, 4, 0)
    assert total.as_dict() == {
        "prompt_tokens": 11,
        "completion_tokens": 5,
        "total_tokens": 16,
        "cached_tokens": 4,
        "reasoning_tokens": 0,
    }


def test_adding_usage_leaves_the_other_side_alone() -> None:
    other = Usage(1, 2, 3, 4, 5)
    total = Usage()

    total.add(other)
    total.add(other)

    assert (total, other) == (Usage(2, 4, 6, 8, 10), Usage(1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    ("metadata", "usage"),
    [
        (None, None),
        ({}, None),
        ({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}, Usage(10, 5, 15)),
        ({"input_tokens": 10, "output_tokens": 5}, Usage(10, 5, 15)),
        ({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}, Usage(0, 0, 0)),
        ({"output_tokens": 5}, Usage(None, 5, None)),
        (
            {
                "input_tokens": 10,
                "output_tokens": 5,
                "total_tokens": 15,
                "input_token_details": {"cache_read": 8, "cache_creation": 1},
                "output_token_details": {"reasoning": 3},
            },
            Usage(10, 5, 15, 8, 3),
        ),
        ({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_token_details": {}}, Usage(1, 1, 2)),
    ],
)
def test_usage_is_read_from_langchains_metadata_without_counting_a_part_twice(
    metadata: dict[str, Any] | None, usage: Usage | None
) -> None:
    assert Usage.from_metadata(metadata) == usage
