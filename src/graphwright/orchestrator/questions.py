"""Typed questions from the model to the user: their schema, and the checks of both sides.

What the model asks and what the user answers is checked where it comes in. The model is told what to correct by a
`ToolArgumentError`, whoever answers by an `InterruptError`; a run stays paused until its answers fit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast, get_args

from pydantic import BaseModel, ConfigDict, Field

from graphwright.engine.interrupt import QUESTION, interrupt
from graphwright.exceptions import InterruptError, ToolArgumentError
from graphwright.orchestrator.stream_events import QuestionEvent, QuestionItem, QuestionType
from graphwright.tools import Tool
from graphwright.types import ToolCall, ToolSpec

__all__ = [
    "ASK_USER_TOOL_NAME",
    "AskUserQuestionTool",
    "AskUserSchema",
    "Question",
    "QuestionOption",
    "answers_text",
    "check_answers",
    "check_questions",
    "question_event",
    "questions_summary",
]

ASK_USER_TOOL_NAME = "ask_user"

_TYPES = get_args(QuestionType)
_CHOICES = ("single_choice", "multi_choice")
_MOST_QUESTIONS = 20
_MOST_OPTIONS = 100


class QuestionOption(BaseModel):
    """One option of a choice."""

    model_config = ConfigDict(extra="forbid")

    value: str = Field(description="what the answer says when this option is chosen")
    label: str = Field("", description="what the user reads; the value when left out")


class Question(BaseModel):
    """One question to the user."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="a short key, different for each question; the answer comes back under it")
    text: str = Field(description="the question as the user reads it")
    type: QuestionType = Field("text", description="what kind of answer is wanted")
    options: list[QuestionOption] | None = Field(
        None, description="what to choose from; for single_choice and multi_choice only"
    )
    required: bool = Field(True, description="whether the run can only go on with an answer")


class AskUserSchema(BaseModel):
    """The arguments of `ask_user`."""

    model_config = ConfigDict(extra="forbid")

    questions: list[Question] = Field(description="everything that you need to know, asked at once")
    reason: str | None = Field(None, description="one sentence for the user: why you ask")


class AskUserQuestionTool(Tool):
    """The tool by which a model asks the user. In a bot it is a signal; in any other agent with a run log it pauses."""

    spec = ToolSpec(
        name=ASK_USER_TOOL_NAME,
        description=(
            "Ask the user for what only the user can know or decide. Ask everything at once, offer options where the "
            "answers are known, and do not ask for what a tool can find out. Other calls in the same turn are not "
            "carried out: make them again when you have the answers."
        ),
        parameters=AskUserSchema.model_json_schema(),
    )
    args_schema = AskUserSchema
    reenterable = True
    risk_level = 0

    @property
    def description(self) -> str:
        """What the model is told of the tool."""
        return self.spec.description

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the questions in full form. Raises what `check_questions` does."""
        questions = check_questions(args)
        return {"questions": questions, "reason": args.get("reason")}

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> str:
        """Pause the run until the questions are answered, and return the answers for the model.

        Answers that do not fit are asked for again, with what is wrong with them under `problem`.
        """
        questions, event = args["questions"], dict(question_event(args["questions"], args["reason"]))
        while True:
            answers = await interrupt(QUESTION, event)
            try:
                return answers_text(check_answers(questions, answers))
            except InterruptError as error:
                event = {**event, "problem": str(error)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AskUserQuestionTool)

    def __hash__(self) -> int:
        return hash(AskUserQuestionTool)


def question_event(questions: Sequence[Mapping[str, Any]], reason: str | None) -> QuestionEvent:
    """Return what whoever answers is shown."""
    items = [cast("QuestionItem", dict(question)) for question in questions]
    return {"type": "question_request", "questions": items, "reason": reason}


def answers_text(answers: Mapping[str, Any]) -> str:
    """Return checked answers as the model reads them."""
    return f"User answers: {json.dumps(dict(answers), ensure_ascii=False)}"


def questions_summary(questions: Sequence[Mapping[str, Any]], reason: str | None = None) -> str:
    """Return questions as plain text, for whoever has no form to show."""
    lines = [reason] if reason else []
    for number, question in enumerate(questions, 1):
        lines.append(f"{number}. {question['text']}")
        lines += [f"   - {option['label']}" for option in question.get("options") or ()]
    return "\n".join(lines)


def check_questions(payload: Any) -> list[dict[str, Any]]:
    """Return the questions of a call's arguments (or of a plain list) with every key in place.

    Raises:
        ToolArgumentError: they cannot be asked as they are; every problem is named.
    """
    problems: list[str] = []
    if isinstance(payload, Mapping):
        problems += _unknown_keys("", payload, AskUserSchema)
        reason = payload.get("reason")
        if reason is not None and not isinstance(reason, str):
            problems.append(f"reason: should be text, not {_short(reason)}")
        payload = payload.get("questions")
    if not isinstance(payload, list) or not payload:
        problems.append(f"questions: should be a list with at least one question, not {_short(payload)}")
        raise ToolArgumentError(ASK_USER_TOOL_NAME, problems)
    if len(payload) > _MOST_QUESTIONS:
        problems.append(f"questions: there are {len(payload)}; ask at most {_MOST_QUESTIONS} at once")
    found = [_question(f"questions[{index}]", entry, problems) for index, entry in enumerate(payload[:_MOST_QUESTIONS])]
    _check_unique([question["id"] for question in found], "questions[{}].id", problems)
    if problems:
        raise ToolArgumentError(ASK_USER_TOOL_NAME, problems)
    return found


def _question(path: str, entry: Any, problems: list[str]) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        problems.append(f"{path}: should be an object with id, text and type, not {_short(entry)}")
        return {"id": None}
    problems += _unknown_keys(path + ".", entry, Question)
    for key in ("id", "text"):
        if not _is_text(entry.get(key)):
            problems.append(f"{path}.{key}: should be text that is not empty, not {_short(entry.get(key))}")
    kind = entry.get("type", "text")
    if kind not in _TYPES:
        problems.append(f"{path}.type: should be one of {', '.join(_TYPES)}, not {_short(kind)}")
    required = entry.get("required", True)
    if not isinstance(required, bool):
        problems.append(f"{path}.required: should be true or false, not {_short(required)}")
    options = entry.get("options")
    if kind in _CHOICES:
        options = _options(f"{path}.options", options, problems)
    elif options:
        problems.append(
            f"{path}.options: only {' and '.join(_CHOICES)} have options; leave them out or change the type"
        )
    else:
        options = None
    return {
        "id": entry.get("id"),
        "text": entry.get("text"),
        "type": kind,
        "options": options,
        "required": required,
    }


def _options(path: str, options: Any, problems: list[str]) -> list[dict[str, str]]:
    if not isinstance(options, list) or not options:
        problems.append(f"{path}: should be a list of value and label with at least one entry, not {_short(options)}")
        return []
    if len(options) > _MOST_OPTIONS:
        problems.append(f"{path}: there are {len(options)}; offer at most {_MOST_OPTIONS}")
    found: list[dict[str, str]] = []
    for index, option in enumerate(options[:_MOST_OPTIONS]):
        where = f"{path}[{index}]"
        if not isinstance(option, Mapping):
            problems.append(f"{where}: should be an object with value and label, not {_short(option)}")
            continue
        problems += _unknown_keys(where + ".", option, QuestionOption)
        value, label = option.get("value"), option.get("label")
        if not _is_text(value):
            problems.append(f"{where}.value: should be text that is not empty, not {_short(value)}")
        if label is not None and not isinstance(label, str):
            problems.append(f"{where}.label: should be text, not {_short(label)}")
        found.append({"value": cast("str", value), "label": label or cast("str", value)})
    _check_unique([option["value"] for option in found], path + "[{}].value", problems)
    return found


def _unknown_keys(path: str, entry: Mapping[Any, Any], schema: type[BaseModel]) -> list[str]:
    known = schema.model_fields
    return [f"{path}{key}: there is no such key; there are {', '.join(known)}" for key in entry if key not in known]


def _check_unique(values: Sequence[Any], path: str, problems: list[str]) -> None:
    seen: set[str] = set()
    for index, value in enumerate(values):
        if not _is_text(value):
            continue
        if value in seen:
            problems.append(f"{path.format(index)}: {value!r} is used more than once; each needs one of its own")
        seen.add(value)


def check_answers(questions: Iterable[Mapping[str, Any]], answers: Any) -> dict[str, Any]:
    """Return the answers that were given, by question id, in the order of the questions.

    A question that need not be answered may be left out, or answered with `None`, and is not in the result.

    Raises:
        InterruptError: they do not fit; every problem is named, and nothing was taken.
    """
    asked = {question["id"]: question for question in questions}
    if not isinstance(answers, Mapping):
        raise InterruptError(
            f"{_short(answers)} answers no questions; give a dict of answers by id, with the ids {_listed(asked)}"
        )
    problems = [
        f"{_short(key)} is the id of no question; the ids are {_listed(asked)}" for key in answers if key not in asked
    ]
    found: dict[str, Any] = {}
    for key, question in asked.items():
        value = answers.get(key)
        if value is None or _is_left_blank(question, value):
            if question["required"]:
                problems.append(f"{key!r} has to be answered: {question['text']}")
            continue
        problem = _READERS[question["type"]](question, value)
        if problem:
            problems.append(f"{key!r} {problem}, not {_short(value)}")
        else:
            found[key] = list(value) if isinstance(value, tuple) else value
    if problems:
        raise InterruptError("the answers do not fit: " + "; ".join(problems))
    return found


def _is_left_blank(question: Mapping[str, Any], value: Any) -> bool:
    if question["type"] == "text":
        return isinstance(value, str) and not value.strip()
    return question["type"] == "multi_choice" and isinstance(value, (list, tuple)) and not value


def _no_text(question: Mapping[str, Any], value: Any) -> str:
    return "" if isinstance(value, str) else "should be text"


def _no_boolean(question: Mapping[str, Any], value: Any) -> str:
    return "" if isinstance(value, bool) else "should be True or False"


def _no_number(question: Mapping[str, Any], value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return "" if is_number else "should be a number"


def _no_choice(question: Mapping[str, Any], value: Any) -> str:
    values = _values(question)
    return "" if isinstance(value, str) and value in values else f"should be one of {_listed(values)}"


def _no_choices(question: Mapping[str, Any], value: Any) -> str:
    values = _values(question)
    fits = isinstance(value, (list, tuple)) and all(isinstance(entry, str) and entry in values for entry in value)
    if not fits:
        return f"should be a list of some of {_listed(values)}"
    return "should name each option once" if len(set(value)) < len(value) else ""


_READERS: dict[str, Callable[[Mapping[str, Any], Any], str]] = {
    "text": _no_text,
    "boolean": _no_boolean,
    "number": _no_number,
    "single_choice": _no_choice,
    "multi_choice": _no_choices,
}


def _values(question: Mapping[str, Any]) -> list[str]:
    return [option["value"] for option in question["options"] or ()]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
