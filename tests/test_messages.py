"""Messages: what may be given as one, what is read from one, and conversations that a strict provider accepts."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

import graphwright.messages as module
from graphwright.exceptions import ConfigurationError
from graphwright.messages import (
    as_message,
    as_messages,
    message_from_dict,
    message_to_dict,
    problem_in,
    refusal_of,
    repair_pairs,
    text_of,
    thinking_of,
    trim_history,
)

SMALL = settings(max_examples=150, deadline=None, derandomize=True)


def ai(text: Any = "", *ids: str | None, args: Any = None) -> AIMessage:
    calls = [{"name": f"t{n}", "args": args or {}, "id": id_, "type": "tool_call"} for n, id_ in enumerate(ids)]
    return AIMessage(text, tool_calls=calls)


def result(call_id: str, text: str = "") -> ToolMessage:
    return ToolMessage(text or f"result of {call_id}", tool_call_id=call_id)


def unparsed(*ids: str | None, text: str = "") -> AIMessage:
    bad = [{"name": "t", "args": "{", "id": id_, "error": None, "type": "invalid_tool_call"} for id_ in ids]
    return AIMessage(text, invalid_tool_calls=bad)


USER, RULES, ANSWER = HumanMessage("question"), SystemMessage("rules"), AIMessage("answer")

_ids = st.sampled_from(["a", "b", "c"])
_texts = st.sampled_from(["", "x", "some text"])
_contents = _texts | st.just([{"type": "thinking", "thinking": "hm"}]) | st.just([{"type": "text", "text": "part"}])
_some_messages = st.lists(
    st.one_of(
        st.builds(HumanMessage, _texts),
        st.builds(SystemMessage, _texts),
        st.builds(lambda text, ids: ai(text, *ids), _contents, st.lists(_ids | st.none(), max_size=3)),
        st.builds(lambda ids: unparsed(*ids), st.lists(_ids | st.none(), max_size=2)),
        st.builds(result, _ids),
    ),
    max_size=12,
)


@st.composite
def _valid_conversations(draw: st.DrawFn) -> list[BaseMessage]:
    messages: list[BaseMessage] = draw(st.lists(st.just(SystemMessage("rules")), max_size=2))
    messages.append(HumanMessage("first"))
    for number, kind in enumerate(draw(st.lists(st.sampled_from(["human", "ai", 1, 2, 5]), max_size=8))):
        if kind == "human":
            messages.append(HumanMessage(f"question {number}"))
        elif kind == "ai":
            messages.append(AIMessage(f"answer {number}"))
        else:
            ids = [f"c{number}_{call}" for call in range(int(kind))]
            messages.append(ai("", *ids))
            messages.extend(result(call_id) for call_id in reversed(ids))
    return messages


def test_the_classes_are_those_of_langchain_and_loading_the_module_alone_loads_nothing() -> None:
    assert module.AIMessage is AIMessage
    assert module.ToolMessage is ToolMessage
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        module.Nothing  # noqa: B018

    code = "import sys, graphwright.messages; sys.exit(any(name.startswith('langchain') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": "src"}, check=False).returncode == 0


@pytest.mark.parametrize(
    ("given_", "kind", "text"),
    [
        ("hello", "human", "hello"),
        (("user", "hello"), "human", "hello"),
        (("system", "be kind"), "system", "be kind"),
        (("ai", "hi"), "ai", "hi"),
        ({"role": "user", "content": "hello"}, "human", "hello"),
        ({"role": "assistant", "content": "hi"}, "ai", "hi"),
        ({"role": "tool", "content": "r", "tool_call_id": "c"}, "tool", "r"),
        ({"role": "user", "content": [{"type": "text", "text": "part"}]}, "human", "part"),
        (AIMessageChunk("chunk"), "ai", "chunk"),
    ],
)
def test_anything_that_stands_for_a_message_becomes_one(given_: Any, kind: str, text: str) -> None:
    message = as_message(given_)

    assert (message.type, text_of(message)) == (kind, text)


def test_a_message_stays_the_object_that_it_is_and_calls_of_a_dict_arrive() -> None:
    message = HumanMessage("same")
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"x": 1}'}}

    assert as_message(message) is message
    made = as_message({"role": "assistant", "content": "", "tool_calls": [call]})
    assert isinstance(made, AIMessage)
    assert [(one["id"], one["name"], one["args"]) for one in made.tool_calls] == [("c1", "look", {"x": 1})]


@pytest.mark.parametrize(
    "bad", [3, None, b"x", ("a", "b", "c"), ("nobody", "x"), {"content": "x"}, {"role": "??", "content": "x"}, object()]
)
def test_anything_else_is_refused_by_its_value(bad: Any) -> None:
    with pytest.raises(ConfigurationError, match="is no message") as failure:
        as_message(bad)

    assert repr(bad)[:20] in str(failure.value)


@pytest.mark.parametrize(
    ("given_", "texts"),
    [
        ("hello", ["hello"]),
        (HumanMessage("hello"), ["hello"]),
        (("user", "hello"), ["hello"]),
        ({"role": "user", "content": "hello"}, ["hello"]),
        ({"messages": "hello"}, ["hello"]),
        ({"messages": ["one", ("ai", "two"), {"role": "user", "content": "three"}]}, ["one", "two", "three"]),
        ({"messages": [HumanMessage("x")], "context": 1}, ["x"]),
        (["one", HumanMessage("two")], ["one", "two"]),
        ((HumanMessage("one"), HumanMessage("two")), ["one", "two"]),
        ([("user", "one")], ["one"]),
    ],
)
def test_every_documented_input_is_a_conversation(given_: Any, texts: list[str]) -> None:
    assert [text_of(message) for message in as_messages(given_)] == texts


@pytest.mark.parametrize(
    ("given_", "reason"),
    [
        ({}, "no 'messages'"),
        ({"question": "x"}, r"the keys \['question'\] and no 'messages'"),
        ([], "has no messages"),
        ({"messages": []}, "has no messages"),
        ({"messages": None}, "is no message"),
        (None, "is no message"),
        ([HumanMessage("x"), 5], "5 of type int is no message"),
    ],
)
def test_an_input_without_messages_is_refused(given_: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        as_messages(given_)


BLOCKS = [
    {"type": "thinking", "thinking": "let me ", "signature": "s"},
    {"type": "reasoning", "reasoning": "think"},
    {"type": "redacted_thinking", "data": "zzz"},
    {"type": "text", "text": "Hel"},
    {"type": "image_url", "image_url": {"url": "data:,"}},
    {"type": "tool_use", "name": "look", "input": {}},
    "lo",
    {"type": "text", "text": None},
    {"type": "output_text", "text": "!"},
]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (AIMessage("plain"), "plain"),
        (AIMessage([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "ab"),
        (BLOCKS, "Hello!"),
        ([], ""),
        ({"messages": [HumanMessage("q"), AIMessage("a")]}, "a"),
        ({"messages": []}, ""),
        ({}, ""),
        (None, ""),
        (7, ""),
    ],
)
def test_the_text_is_what_a_person_would_read(value: Any, text: str) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("message", "thinking"),
    [
        (AIMessage("x"), ""),
        (AIMessage([BLOCKS[0], BLOCKS[1], BLOCKS[2], BLOCKS[3]]), "let me think"),
        (AIMessage("x", additional_kwargs={"reasoning_content": "deep"}), "deep"),
        (AIMessage([BLOCKS[0]], additional_kwargs={"reasoning_content": "let me "}), "let me "),
        (AIMessage([{"type": "reasoning_content", "reasoning_content": {"text": "aws"}}]), "aws"),
        (AIMessage([{"type": "reasoning", "summary": [{"text": "a"}, {"text": "b"}]}]), "ab"),
        ("text", ""),
    ],
)
def test_thinking_is_read_in_each_providers_shape_and_is_never_text(message: Any, thinking: str) -> None:
    assert thinking_of(message) == thinking
    assert thinking == "" or thinking not in text_of(message)


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        (AIMessage("", additional_kwargs={"refusal": "no"}), "no"),
        (AIMessage([{"type": "refusal", "refusal": "never"}]), "never"),
        (AIMessage([{"type": "refusal"}]), "refused"),
        (AIMessage("", additional_kwargs={"refusal": None}), None),
        (AIMessage("fine"), None),
    ],
)
def test_a_refusal_is_found_in_each_of_its_places(message: AIMessage, refusal: str | None) -> None:
    assert refusal_of(message) == refusal


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("q", name="bob", id="m1"),
        SystemMessage([{"type": "text", "text": "rules"}]),
        AIMessage(
            [BLOCKS[0], BLOCKS[3]],
            tool_calls=[{"name": "t", "args": {"a": [1, None]}, "id": "c", "type": "tool_call"}],
            usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
            response_metadata={"finish_reason": "stop"},
        ),
        unparsed("c1"),
        ToolMessage("r", tool_call_id="c", name="t", status="error"),
    ],
)
def test_a_message_goes_through_json_and_back_unchanged(message: BaseMessage) -> None:
    data = json.loads(json.dumps(message_to_dict(message)))

    again = message_from_dict(data)

    assert again == message
    assert type(again) is type(message)


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([USER], None),
        ([RULES, USER, ANSWER], None),
        ([USER, ai("", "a", "b"), result("b"), result("a"), ANSWER], None),
        ([USER, ai("", "a"), result("a"), ai("", "a"), result("a")], None),
        ([USER, AIMessage([{"type": "image_url", "image_url": {"url": "data:,"}}])], None),
        ([], "there is no user turn"),
        ([RULES, ANSWER], "there is no user turn"),
        ([USER, result("a")], "message 1 is a result for 'a'"),
        ([USER, ai("", "a"), USER], r"message 2 comes before the results of \['a'\]"),
        ([USER, ai("", "a", "b"), result("a"), ANSWER], r"message 3 comes before the results of \['b'\]"),
        ([USER, ai("", "a"), result("a"), result("a")], "message 3 is a result for 'a'"),
        ([USER, ai("", "a", "b"), result("a")], r"ends before the results of \['b'\]"),
        ([USER, ai("", "a", "a"), result("a"), result("a")], "missing or repeated"),
        ([USER, ai("", None)], "missing or repeated"),
        ([USER, unparsed("a")], "unparsed tool calls"),
        ([USER, AIMessage("")], "message 1 is an assistant turn without text and call"),
        ([USER, AIMessage([BLOCKS[0]])], "without text and call"),
        ([USER, AIMessage([BLOCKS[5]])], "without text and call"),
    ],
)
def test_what_a_strict_provider_rejects_is_named_with_its_place(
    messages: list[BaseMessage], problem: str | None
) -> None:
    found = problem_in(messages)

    if problem is None:
        assert found is None
    else:
        assert found is not None
        with pytest.raises(ValueError, match=problem):
            raise ValueError(found)


def test_a_check_can_begin_where_an_earlier_one_ended() -> None:
    messages = [AIMessage(""), USER, ai("", "a"), result("a")]

    assert problem_in(messages, start=1) is None
    assert "without text" in (problem_in(messages) or "")


@SMALL
@given(_some_messages)
def test_any_list_with_a_user_turn_is_repaired_to_one_that_a_provider_accepts(messages: list[BaseMessage]) -> None:
    repaired = repair_pairs(messages)

    if any(message.type == "human" for message in messages):
        assert problem_in(repaired) is None
    else:
        assert problem_in(repaired) == "there is no user turn"


@SMALL
@given(_some_messages)
def test_a_repair_loses_no_human_or_system_message_and_no_assistant_text(messages: list[BaseMessage]) -> None:
    repaired = repair_pairs(messages)

    def people(some: list[BaseMessage]) -> list[int]:
        return [id(message) for message in some if message.type in ("human", "system")]

    def said(some: list[BaseMessage]) -> list[str]:
        return [text_of(message) for message in some if message.type == "ai" and text_of(message)]

    assert people(repaired) == people(messages)
    assert said(repaired) == said(messages)


@SMALL
@given(_some_messages)
def test_a_repair_of_a_repaired_conversation_changes_nothing(messages: list[BaseMessage]) -> None:
    once = repair_pairs(messages)
    twice = repair_pairs(once)

    assert [id(message) for message in twice] == [id(message) for message in once]


@SMALL
@given(_some_messages)
def test_a_repair_leaves_the_given_messages_as_they_were(messages: list[BaseMessage]) -> None:
    before = [message.model_dump() for message in messages]

    repair_pairs(messages)

    assert [message.model_dump() for message in messages] == before


@SMALL
@given(_valid_conversations())
def test_a_conversation_in_which_nothing_is_wrong_keeps_its_very_messages(messages: list[BaseMessage]) -> None:
    assert problem_in(messages) is None
    assert [id(message) for message in repair_pairs(messages)] == [id(message) for message in messages]


@SMALL
@given(_valid_conversations(), st.data())
def test_results_that_strayed_from_their_call_come_back_to_it(messages: list[BaseMessage], data: st.DataObject) -> None:
    strayed = list(messages)
    for message in [message for message in messages if message.type == "tool"]:
        place = next(index for index, other in enumerate(strayed) if other is message)
        strayed.insert(data.draw(st.integers(place, len(strayed) - 1)), strayed.pop(place))

    repaired = repair_pairs(strayed)

    assert problem_in(repaired) is None
    assert {id(message) for message in repaired} == {id(message) for message in messages}


def test_a_call_without_result_gets_one_that_says_so() -> None:
    repaired = repair_pairs([USER, ai("", "a", "b"), result("b"), HumanMessage("next")])

    assert [message.type for message in repaired] == ["human", "ai", "tool", "tool", "human"]
    made = repaired[2]
    assert isinstance(made, ToolMessage)
    assert (made.tool_call_id, made.name, made.status) == ("a", "t0", "error")
    assert "may or may not have run" in text_of(made)


def test_a_result_goes_to_the_latest_call_before_it_when_ids_are_used_again() -> None:
    late = result("a", "of the second")

    repaired = repair_pairs([USER, ai("", "a"), HumanMessage("go on"), ai("", "a"), late])

    assert problem_in(repaired) is None
    assert repaired[-1] is late
    assert "No result was recorded" in text_of(repaired[2])


def test_only_the_first_of_two_results_of_a_call_stays() -> None:
    first, second = result("a", "first"), result("a", "second")

    assert repair_pairs([USER, ai("", "a"), first, second])[2:] == [first]


def test_a_result_before_its_call_is_left_out() -> None:
    repaired = repair_pairs([USER, result("a", "early"), ai("", "a")])

    assert [message.type for message in repaired] == ["human", "ai", "tool"]
    assert "No result was recorded" in text_of(repaired[-1])


def test_unparsed_calls_become_calls_with_empty_arguments_and_keep_their_results() -> None:
    answered = result("u1")

    repaired = repair_pairs([USER, unparsed("u1", None, text="hm"), answered])

    reply = repaired[1]
    assert isinstance(reply, AIMessage)
    assert (text_of(reply), reply.invalid_tool_calls) == ("hm", [])
    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("t", {}), ("t", {})]
    assert repaired[2] is answered
    assert problem_in(repaired) is None


@pytest.mark.parametrize("after", [[], [result("a")], [result("b")], [result("a"), result("zzz")]])
def test_calls_that_are_about_to_run_may_stay_owed(after: list[BaseMessage]) -> None:
    owing = ai("", "a", "b")

    kept = repair_pairs([USER, owing, *after], keep_owed=True)

    assert kept[:2] == [USER, owing]
    assert kept[2:] == [message for message in after if text_of(message) != "result of zzz"]


def test_only_the_last_turn_may_owe() -> None:
    kept = repair_pairs([USER, ai("", "a"), ANSWER, ai("", "b")], keep_owed=True)

    assert [message.type for message in kept] == ["human", "ai", "tool", "ai", "ai"]
    closed = repair_pairs([USER, ai("", "a"), HumanMessage("next")], keep_owed=True)
    assert problem_in(closed) is None


ROUNDS = [
    RULES,
    HumanMessage("first"),
    ai("", "x", "y"),
    result("x"),
    result("y"),
    AIMessage("done"),
    HumanMessage("the question"),
    ai("", "p", "q", "r", "s", "t"),
    *(result(call_id) for call_id in "pqrst"),
]


@pytest.mark.parametrize("limit", range(-1, 16))
@pytest.mark.parametrize("ends_with", ["question", "round"])
def test_every_limit_leaves_whole_rounds_the_systems_and_the_question(limit: int, ends_with: str) -> None:
    messages = ROUNDS if ends_with == "round" else ROUNDS[:7]

    trimmed = trim_history(messages, limit)

    assert problem_in(trimmed) is None
    assert RULES in trimmed
    assert HumanMessage("the question") in trimmed
    assert len(trimmed) <= max(limit, 2)
    assert [id(message) for message in trimmed] == [id(one) for one in messages if any(one is kept for kept in trimmed)]


@SMALL
@given(_some_messages, st.integers(1, 8))
def test_any_list_trims_to_a_conversation_that_a_provider_accepts(messages: list[BaseMessage], limit: int) -> None:
    trimmed = trim_history(messages, limit)

    people = [message for message in messages if message.type == "human"]
    systems = [id(message) for message in messages if message.type == "system"]
    assert [id(message) for message in trimmed if message.type == "system"] == systems
    assert len(trimmed) <= max(limit, len(systems) + bool(people))
    if people:
        assert problem_in(trimmed) is None
        assert any(message is people[-1] for message in trimmed)


@SMALL
@given(_valid_conversations())
def test_a_conversation_within_the_limit_is_left_alone(messages: list[BaseMessage]) -> None:
    assert [id(message) for message in trim_history(messages, len(messages))] == [id(message) for message in messages]


def test_the_newest_messages_stay_and_a_message_of_your_choice() -> None:
    messages: list[BaseMessage] = [HumanMessage(str(number)) for number in range(6)]

    assert [text_of(message) for message in trim_history(messages, 3)] == ["3", "4", "5"]
    assert [text_of(message) for message in trim_history(messages, 3, keep=messages[1])] == ["1", "4", "5"]
