from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphwright.agent import build_agent
from graphwright.exceptions import InterruptError, ToolArgumentError
from graphwright.messages import text_of
from graphwright.orchestrator.questions import (
    ASK_USER_TOOL_NAME,
    AskUserQuestionTool,
    AskUserSchema,
    Question,
    QuestionOption,
    answers_text,
    check_answers,
    check_questions,
    question_event,
    questions_summary,
)
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, calls, says
from graphwright.tools import as_tools

COLORS = [{"value": "r", "label": "Rojo"}, {"value": "g", "label": "Verde"}]
ASKED = check_questions(
    [
        {"id": "name", "text": "Name?"},
        {"id": "color", "text": "Color?", "type": "single_choice", "options": COLORS},
        {"id": "extras", "text": "Extras?", "type": "multi_choice", "options": COLORS, "required": False},
        {"id": "sure", "text": "Sure?", "type": "boolean"},
        {"id": "count", "text": "How many?", "type": "number", "required": False},
    ]
)
GIVEN = {"name": "Ana", "color": "r", "sure": False}


def test_questions_come_back_with_every_key_in_place() -> None:
    payload = {"questions": [{"id": "a", "text": "A?", "type": "single_choice", "options": [{"value": "x"}]}]}

    assert check_questions(payload) == [
        {
            "id": "a",
            "text": "A?",
            "type": "single_choice",
            "options": [{"value": "x", "label": "x"}],
            "required": True,
        }
    ]
    assert check_questions([{"id": "a", "text": "A?", "options": []}])[0]["options"] is None
    assert ASKED[0] == {"id": "name", "text": "Name?", "type": "text", "options": None, "required": True}


def problems_of(payload: Any) -> list[str]:
    with pytest.raises(ToolArgumentError) as raised:
        check_questions(payload)
    assert raised.value.tool_name == ASK_USER_TOOL_NAME
    return raised.value.problems


@pytest.mark.parametrize("payload", ["what?", None, [], {}, {"questions": []}, {"questions": "what?"}, 5])
def test_questions_that_are_no_list_are_refused(payload: Any) -> None:
    assert problems_of(payload)[-1].startswith("questions: should be a list with at least one question, not ")


@pytest.mark.parametrize(
    ("question", "problem"),
    [
        ("what?", "questions[0]: should be an object with id, text and type, not 'what?'"),
        ({"text": "A?"}, "questions[0].id: should be text that is not empty, not None"),
        ({"id": " ", "text": "A?"}, "questions[0].id: should be text that is not empty, not ' '"),
        ({"id": 3, "text": "A?"}, "questions[0].id: should be text that is not empty, not 3"),
        ({"id": "a", "text": ""}, "questions[0].text: should be text that is not empty, not ''"),
        (
            {"id": "a", "text": "A?", "type": "date"},
            "questions[0].type: should be one of text, single_choice, multi_choice, boolean, number, not 'date'",
        ),
        (
            {"id": "a", "text": "A?", "type": ["text"]},
            "questions[0].type: should be one of text, single_choice, multi_choice, boolean, number, not ['text']",
        ),
        ({"id": "a", "text": "A?", "required": "yes"}, "questions[0].required: should be true or false, not 'yes'"),
        (
            {"id": "a", "text": "A?", "options": COLORS},
            "questions[0].options: only single_choice and multi_choice have options; leave them out or change the type",
        ),
        (
            {"id": "a", "text": "A?", "type": "multi_choice"},
            "questions[0].options: should be a list of value and label with at least one entry, not None",
        ),
        (
            {"id": "a", "text": "A?", "type": "single_choice", "options": ["r"]},
            "questions[0].options[0]: should be an object with value and label, not 'r'",
        ),
        (
            {"id": "a", "text": "A?", "type": "single_choice", "options": [{"value": "", "label": "x"}]},
            "questions[0].options[0].value: should be text that is not empty, not ''",
        ),
        (
            {"id": "a", "text": "A?", "type": "single_choice", "options": [{"value": "r"}, {"value": "r"}]},
            "questions[0].options[1].value: 'r' is used more than once; each needs one of its own",
        ),
        (
            {"id": "a", "text": "A?", "default": 1},
            "questions[0].default: there is no such key; there are id, text, type, options, required",
        ),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_by_its_place(question: Any, problem: str) -> None:
    assert problems_of({"questions": [question]}) == [problem]


def test_every_problem_of_a_payload_is_named_at_once() -> None:
    found = problems_of({"questions": [{"id": "a", "text": "A?"}, {"id": "a", "text": 1}], "reason": 5, "more": 1})

    assert found == [
        "more: there is no such key; there are questions, reason",
        "reason: should be text, not 5",
        "questions[1].text: should be text that is not empty, not 1",
        "questions[1].id: 'a' is used more than once; each needs one of its own",
    ]


def test_questions_without_end_are_refused() -> None:
    assert problems_of([{"id": str(n), "text": "?"} for n in range(21)]) == [
        "questions: there are 21; ask at most 20 at once"
    ]


def test_answers_that_fit_come_back_in_the_order_of_the_questions() -> None:
    answers = {"count": 2.5, "extras": ("g", "r"), "sure": True, "color": "g", "name": "Ana"}

    found = check_answers(ASKED, answers)

    assert found == {"name": "Ana", "color": "g", "extras": ["g", "r"], "sure": True, "count": 2.5}
    assert list(found) == ["name", "color", "extras", "sure", "count"]


def test_what_need_not_be_answered_can_be_left_out() -> None:
    assert check_answers(ASKED, {**GIVEN, "extras": [], "count": None}) == GIVEN


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": None}, "'name' has to be answered: Name?"),
        ({"name": "  "}, "'name' has to be answered: Name?"),
        ({"name": 5}, "'name' should be text, not 5"),
        ({"color": "x"}, "'color' should be one of 'r', 'g', not 'x'"),
        ({"color": "Rojo"}, "'color' should be one of 'r', 'g', not 'Rojo'"),
        ({"color": ["r"]}, "'color' should be one of 'r', 'g', not ['r']"),
        ({"extras": "r"}, "'extras' should be a list of some of 'r', 'g', not 'r'"),
        ({"extras": ["r", "x"]}, "'extras' should be a list of some of 'r', 'g', not ['r', 'x']"),
        ({"extras": [["r"]]}, "'extras' should be a list of some of 'r', 'g', not [['r']]"),
        ({"extras": ["r", "r"]}, "'extras' should name each option once, not ['r', 'r']"),
        ({"sure": "yes"}, "'sure' should be True or False, not 'yes'"),
        ({"sure": 1}, "'sure' should be True or False, not 1"),
        ({"count": True}, "'count' should be a number, not True"),
        ({"count": "3"}, "'count' should be a number, not '3'"),
        ({"count": math.nan}, "'count' should be a number, not nan"),
        ({"count": math.inf}, "'count' should be a number, not inf"),
        ({"size": 1}, "'size' is the id of no question; the ids are 'name', 'color', 'extras', 'sure', 'count'"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_by_name(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(InterruptError) as raised:
        check_answers(ASKED, {**GIVEN, **change})

    assert str(raised.value) == f"the answers do not fit: {problem}"


@pytest.mark.parametrize("answers", ["yes", True, None, [], ["Ana"], 0])
def test_answers_that_are_no_dict_are_refused(answers: Any) -> None:
    with pytest.raises(InterruptError, match="answers no questions; give a dict of answers by id, with the ids 'name'"):
        check_answers(ASKED, answers)


def test_every_problem_of_the_answers_is_named_at_once() -> None:
    with pytest.raises(InterruptError) as raised:
        check_answers(ASKED, {"sure": "no", "x": 1})

    assert str(raised.value).count(";") == 4
    for name in ("'x'", "'name'", "'color'", "'sure'"):
        assert name in str(raised.value)


def test_a_required_list_needs_an_entry() -> None:
    asked = check_questions([{"id": "a", "text": "A?", "type": "multi_choice", "options": COLORS}])

    with pytest.raises(InterruptError, match="'a' has to be answered: A\\?"):
        check_answers(asked, {"a": []})


@given(
    st.dictionaries(st.sampled_from([question["id"] for question in ASKED]), st.integers() | st.booleans() | st.text())
)
def test_whatever_passes_is_right(answers: dict[str, Any]) -> None:
    try:
        found = check_answers(ASKED, answers)
    except InterruptError:
        return
    assert isinstance(found["name"], str)
    assert found["color"] in ("r", "g")
    assert isinstance(found["sure"], bool)
    assert type(found.get("count", 0)) is int
    assert check_answers(ASKED, found) == found


def test_the_model_reads_answers_as_json_in_their_own_letters() -> None:
    assert answers_text({"color": "señal"}) == 'User answers: {"color": "señal"}'


def test_questions_can_be_shown_as_text() -> None:
    assert questions_summary(ASKED[:2], "To go on.") == "To go on.\n1. Name?\n2. Color?\n   - Rojo\n   - Verde"
    assert questions_summary(ASKED[:1]) == "1. Name?"
    assert question_event(ASKED[:1], None) == {"type": "question_request", "questions": ASKED[:1], "reason": None}


def test_the_tool_goes_into_a_list_of_tools_and_checks_its_arguments() -> None:
    tool = AskUserQuestionTool()
    (entry,) = as_tools([tool, AskUserQuestionTool()])

    assert (entry.name, tool.name, tool.args_schema) == (ASK_USER_TOOL_NAME, "ask_user", AskUserSchema)
    assert tool.description
    assert set(entry.spec.parameters["properties"]) == {"questions", "reason"}
    assert entry.validate({"questions": [{"id": "a", "text": "A?"}]}) == {
        "questions": [{"id": "a", "text": "A?", "type": "text", "options": None, "required": True}],
        "reason": None,
    }
    with pytest.raises(ToolArgumentError, match="should be a list with at least one question"):
        entry.validate({"questions": "what?"})


async def test_any_agent_with_a_run_log_can_ask_and_asks_again_until_the_answers_fit() -> None:
    model = ScriptedModel([calls("ask_user", questions=[{"id": "a", "text": "A?"}]), says("done")])
    agent = await build_agent(model=model, servers={}, extra_tools=[AskUserQuestionTool()], runlog=MemoryRunLog())

    result = await agent.ainvoke({"messages": [{"role": "user", "content": "go"}]}, session_id="t1")
    (first,) = result["__interrupt__"]
    again = await agent.resume("t1", {first.id: {"a": 5}})
    (second,) = again["__interrupt__"]
    done = await agent.resume("t1", {second.id: {"a": "five"}})

    assert (first.kind, first.value["questions"][0]["id"]) == ("question", "a")
    assert "problem" not in first.value
    assert second.id != first.id
    assert second.value == {**first.value, "problem": "the answers do not fit: 'a' should be text, not 5"}
    assert [text_of(message) for message in done["messages"][-2:]] == ['User answers: {"a": "five"}', "done"]


def test_the_schema_and_the_check_admit_the_same() -> None:
    option = QuestionOption(value="r", label="Rojo")
    schema = AskUserSchema(
        questions=[Question(id="a", text="A?", type="single_choice", options=[option])], reason="because"
    )

    assert check_questions(schema.model_dump()) == schema.model_dump()["questions"]
    assert json.loads(schema.model_dump_json())["reason"] == "because"
