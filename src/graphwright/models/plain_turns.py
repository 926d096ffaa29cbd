"""Write a conversation, its tools and its tool results as plain turns, for a model that knows only text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from graphwright._internal.jsonio import dumps
from graphwright.messages import text_of
from graphwright.models.grammar_schema import resolved
from graphwright.types import ToolSpec

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

__all__ = ["Turn", "field_lines", "plain_turns", "tool_lines"]

ARGUMENTS = "arguments:"
RESULT = "Result of {call}: {text}"
FAILED = "Error of {call}: {text}"
NO_TEXT = "(nothing)"
UNREADABLE = "(something that is not text)"
EARLIER = "(The conversation began earlier.)"
CONTINUE = "Continue."

_MOST_NESTED = 4
"""Levels of nested fields that are described."""

_MOST_WORDS = 300
"""Characters of a description that are shown."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation as a chat template takes it."""

    role: Literal["system", "user", "assistant"]

    content: str


def plain_turns(
    messages: Sequence[BaseMessage], *, guide: str = "", samples: Sequence[Turn] = (), ask: str = ""
) -> list[Turn]:
    """Return the conversation as at most one system turn, then user and assistant turns that alternate.

    The conversation starts and ends with a user turn. `guide` is the end of the system turn, `samples` come before
    the conversation, and `ask` is the end of the last turn. Tool calls show in their results only.
    """
    rules = [*(text_of(message) for message in messages if message.type == "system"), guide]
    turns: list[Turn] = []
    calls = _calls_by_id(messages)
    for message in messages:
        if message.type == "system" or (message.type == "ai" and not text_of(message) and _has_calls(message)):
            # A call shows in its result; written as a turn of its own it is imitated where words are wanted.
            continue
        turn = _turn_of(message, calls)
        if turns and turns[-1].role == turn.role:
            turn = Turn(turn.role, f"{turns.pop().content}\n\n{turn.content}")
        turns.append(turn)
    if turns and turns[0].role != "user":
        turns.insert(0, Turn("user", EARLIER))
    if not turns or turns[-1].role != "user":
        turns.append(Turn("user", ask or CONTINUE))
    elif ask:
        turns[-1] = Turn("user", f"{turns[-1].content}\n\n{ask}")
    system = "\n\n".join(rule for rule in rules if rule)
    return [*([Turn("system", system)] if system else ()), *samples, *turns]


def field_lines(schema: Mapping[str, Any], *, indent: str = "") -> list[str]:
    """Return one line for each field of an object schema: its name, its kind and what it means."""
    return list(_fields(schema, schema, indent, 0))


def tool_lines(tools: Sequence[ToolSpec]) -> list[str]:
    """Return a line for each tool, with lines for its arguments below it."""
    lines: list[str] = []
    for tool in tools:
        lines.append(f"- {tool.name}: {_short(tool.description)}" if tool.description else f"- {tool.name}")
        fields = field_lines(tool.parameters, indent="    ")
        if fields:
            lines.append(f"  {ARGUMENTS}")
            lines.extend(fields)
    return lines


def _turn_of(message: BaseMessage, calls: Mapping[str, tuple[str, Mapping[str, Any]]]) -> Turn:
    text = text_of(message)
    if message.type == "ai":
        return Turn("assistant", text or NO_TEXT)
    if message.type == "tool":
        result = cast("ToolMessage", message)
        name, args = calls.get(result.tool_call_id, (result.name or "the tool", None))
        call = name if args is None else f"{name}({', '.join(f'{key}={dumps(value)}' for key, value in args.items())})"
        form = FAILED if result.status == "error" else RESULT
        return Turn("user", form.format(call=call, text=text or (UNREADABLE if result.content else NO_TEXT)))
    return Turn("user", text or (UNREADABLE if message.content else NO_TEXT))


def _has_calls(message: BaseMessage) -> bool:
    return bool(cast("AIMessage", message).tool_calls)


def _calls_by_id(messages: Sequence[BaseMessage]) -> dict[str, tuple[str, Mapping[str, Any]]]:
    return {
        str(call["id"]): (call["name"], call["args"])
        for message in messages
        if message.type == "ai"
        for call in cast("AIMessage", message).tool_calls
    }


def _fields(schema: Mapping[str, Any], document: Mapping[str, Any], indent: str, depth: int) -> Iterable[str]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    for name, given in properties.items():
        part = resolved(given, document)
        # Only the outer part of a reference carries the words about this use of it.
        described = given.get("description") if isinstance(given, Mapping) else None
        meaning = _short(described or part.get("description") or "")
        kind = _kind(part, document)
        optional = "" if name in required else ", optional"
        yield f"{indent}{name} ({kind}{optional})" + (f": {meaning}" if meaning else "")
        inner = resolved(part.get("items"), document) if kind == "list of objects" else part
        if depth < _MOST_NESTED:
            yield from _fields(inner, document, indent + "  ", depth + 1)


def _kind(schema: Mapping[str, Any], document: Mapping[str, Any], depth: int = 0) -> str:
    if "const" in schema:
        return dumps(schema["const"])
    values = schema.get("enum")
    if isinstance(values, list) and values:
        return " or ".join(dumps(value) for value in values)
    for word in ("anyOf", "oneOf"):
        choices = schema.get(word)
        if isinstance(choices, list) and choices and depth < _MOST_NESTED:
            kinds = [_kind(resolved(choice, document), document, depth + 1) for choice in choices]
            return " or ".join(dict.fromkeys(kinds))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(_kind({**schema, "type": one}, document, depth + 1) for one in kind)
    if kind == "array":
        inner = _kind(resolved(schema.get("items"), document), document, depth + 1) if depth < _MOST_NESTED else "value"
        return f"list of {inner}s" if inner.isalpha() else f"list of {inner}"
    if kind == "object" or (kind is None and "properties" in schema):
        return "object"
    return kind if isinstance(kind, str) else "value"


def _short(text: Any) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= _MOST_WORDS else words[: _MOST_WORDS - 3] + "..."
