"""The forms for what a run waits for: decisions on tool calls, typed questions, and whatever else asks a person."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphwright.cli._console import Console
from graphwright.cli._event_json import as_json
from graphwright.cli._text import one_line, visible
from graphwright.interrupts import APPROVAL, HUMAN, QUESTION, Interrupt

__all__ = ["ask_for", "json_object", "lines_of"]

Question = Mapping[str, Any]

_DECISIONS = {"y": "yes", "n": "no", "e": "edit", "a": "all"}
_YES = frozenset({"y", "yes", "true", "1"})
_NO = frozenset({"n", "no", "false", "0"})
_DIFF_LINES = 40


def lines_of(item: Interrupt) -> list[str]:
    """Return what a pending item asks, as lines that are safe to print."""
    if item.kind == APPROVAL:
        return _approval_lines(item)
    if item.kind != QUESTION:
        return [f"{one_line(item.kind)} {item.id}: {one_line(as_json(item.value), 2000)}"]
    reason = item.value.get("reason")
    lines = [f"question {item.id}" + (f": {one_line(str(reason))}" if reason else "")]
    for question in item.value.get("questions", ()):
        lines.append(f"  {one_line(question['id'])} ({_wanted(question)}): {one_line(question['text'])}")
        lines += [f"    {_option_text(number, option)}" for number, option in _numbered(question)]
    return lines


async def ask_for(item: Interrupt, console: Console, show: Callable[[str], None]) -> Any:
    """Show the form of a pending item, and return the answer that was typed."""
    if item.kind == APPROVAL:
        for line in lines_of(item):
            show(line)
        return await _decision(item, console)
    if item.kind == QUESTION:
        if item.value.get("problem"):
            show(visible(str(item.value["problem"])))
        if item.value.get("reason"):
            show(one_line(str(item.value["reason"])))
        answers = {}
        for question in item.value.get("questions", ()):
            value = await _answer(question, console, show)
            if value is not None:
                answers[question["id"]] = value
        return answers
    for line in lines_of(item):
        show(line)
    if item.kind == HUMAN:
        return await _yes_or_no(console)
    return await console.ask("answer (JSON, or text):", _json_or_text)


def json_object(text: str) -> dict[str, Any]:
    """Return the object that a JSON text holds.

    Raises:
        ValueError: it is no JSON, or no object.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"this is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f'this is {type(value).__name__}, not an object such as {{"name": "value"}}')
    return value


def _approval_lines(item: Interrupt) -> list[str]:
    shown = item.value
    lines = [f"approval {item.id}: {one_line(str(shown.get('tool')))}"]
    params = shown.get("params", shown.get("arguments"))
    if isinstance(params, Mapping):
        lines += [f"  {one_line(str(name))} = {one_line(as_json(value), 2000)}" for name, value in params.items()]
    if shown.get("guard_reason"):
        lines.append(f"  asked because: {one_line(str(shown['guard_reason']))}")
    diff = visible(str(shown.get("diff") or "")).splitlines()
    lines += [f"  | {line}" for line in diff[:_DIFF_LINES]]
    if len(diff) > _DIFF_LINES:
        lines.append(f"  | ... and {len(diff) - _DIFF_LINES} more lines")
    return lines


async def _decision(item: Interrupt, console: Console) -> dict[str, Any]:
    tool = one_line(str(item.value.get("tool")))
    decided = await console.ask(f"run it? [y]es, [n]o, [e]dit, [a]ll calls of {tool} in this run:", _read_decision)
    if decided == "yes":
        return {"approved": True}
    if decided == "all":
        return {"approved": True, "always": True}
    if decided == "no":
        return await _denial(console)
    params = json.dumps(item.value.get("params", {}), ensure_ascii=False, default=str)
    return {"approved": True, "args": await console.ask("arguments as JSON:", _read_edit, default=params)}


async def _yes_or_no(console: Console) -> dict[str, Any]:
    if await console.ask("approve? yes or no:", lambda text: _read_boolean({}, text)):
        return {"approved": True}
    return await _denial(console)


async def _denial(console: Console) -> dict[str, Any]:
    feedback = await console.ask("why not (what the model reads; may be empty):", str.strip)
    return {"approved": False, **({"feedback": feedback} if feedback else {})}


def _read_decision(text: str) -> str:
    word = text.lower()
    if word in _DECISIONS.values():
        return word
    if word not in _DECISIONS:
        raise ValueError(f"{text!r} is no decision; type y, n, e or a")
    return _DECISIONS[word]


def _read_edit(text: str) -> dict[str, Any]:
    from graphwright.orchestrator.redact import REDACTED

    edited = json_object(text)
    if REDACTED in text:
        raise ValueError(f"{REDACTED} stands for something that is not shown; put the value in its place")
    return edited


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


async def _answer(question: Question, console: Console, show: Callable[[str], None]) -> Any:
    show(one_line(question["text"]))
    for number, option in _numbered(question):
        show(f"  {_option_text(number, option)}")
    return await console.ask(f"{_wanted(question)}:", lambda text: _read_answer(question, text))


def _wanted(question: Question) -> str:
    wanted = {
        "text": "text",
        "number": "number",
        "boolean": "yes or no",
        "single_choice": "one of these",
        "multi_choice": "any of these, separated by commas",
    }[question["type"]]
    return wanted if question.get("required", True) else f"{wanted}, may be empty"


def _read_answer(question: Question, text: str) -> Any:
    if not text:
        if question.get("required", True):
            raise ValueError(f"an answer is needed: {_wanted(question)}")
        return None
    return _READERS[question["type"]](question, text)


def _read_text(question: Question, text: str) -> str:
    return text


def _read_number(question: Question, text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is no number; type one such as 3 or 2.5")
    return number


def _read_boolean(question: Question, text: str) -> bool:
    word = text.lower()
    if word not in _YES | _NO:
        raise ValueError(f"{text!r} is neither; type yes or no")
    return word in _YES


def _read_choice(question: Question, text: str) -> str:
    """Return the value of an option that is named by its value, its label, or its number."""
    options = question["options"]
    for key in ("value", "label"):
        for option in options:
            if option[key].casefold() == text.casefold():
                value: str = option["value"]
                return value
    if text.isdecimal() and 1 <= int(text) <= len(options):
        numbered: str = options[int(text) - 1]["value"]
        return numbered
    raise ValueError(f"{text!r} is no option; type a number from 1 to {len(options)}, or the name")


def _read_choices(question: Question, text: str) -> list[str]:
    chosen = [_read_choice(question, part.strip()) for part in text.split(",") if part.strip()]
    if not chosen:
        raise ValueError("nothing is chosen; type numbers or names, separated by commas")
    if len(set(chosen)) < len(chosen):
        raise ValueError("an option is named twice; name each once")
    return chosen


_READERS: dict[str, Callable[[Question, str], Any]] = {
    "text": _read_text,
    "number": _read_number,
    "boolean": _read_boolean,
    "single_choice": _read_choice,
    "multi_choice": _read_choices,
}


def _numbered(question: Question) -> Sequence[tuple[int, Mapping[str, str]]]:
    return list(enumerate(question.get("options") or (), 1))


def _option_text(number: int, option: Mapping[str, str]) -> str:
    value, label = one_line(option["value"]), one_line(option.get("label") or option["value"])
    return f"{number}. {label}" if value == label else f"{number}. {label} ({value})"
