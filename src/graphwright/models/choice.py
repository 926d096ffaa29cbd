"""The JSON object with which a model that only writes text chooses a tool or none: its form, and how it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphwright._internal.jsonio import find_json
from graphwright.models.grammar_schema import ANY_OBJECT, grammar_schema
from graphwright.models.plain_turns import Turn
from graphwright.types import ToolSpec

__all__ = ["Choice", "ChoiceForm", "ChosenCall", "Unusable"]

SMALL_TALK = ("Hello, how are you?", "Tell me a story.")
"""What a user says in the samples that need no tool."""

_MOST_SAMPLES = 6
"""Tools that the samples show."""

_NAME_KEYS = ("tool", "name", "tool_name", "function")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input")


@dataclass(frozen=True, slots=True)
class ChosenCall:
    """A tool call that a model wrote; its arguments are an object and not yet validated."""

    name: str

    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """What a model chose; without calls it wants to answer."""

    calls: list[ChosenCall] = field(default_factory=list)

    text: str = ""
    """The answer, when the model wrote it in place of its choice."""


class Unusable(Exception):
    """What a model wrote as JSON cannot be used; says why, in words for the model."""

    def __init__(self, problem: str, *, meant_a_call: bool = True) -> None:
        super().__init__(problem)
        self.meant_a_call = meant_a_call


class ChoiceForm:
    """What a choice between some tools looks like: `{"tool": name, "arguments": {...}}`, or `{"tool": "none"}`."""

    def __init__(self, tools: Sequence[ToolSpec], *, may_answer: bool) -> None:
        self.tools = tools
        self.none = _word_for_none(tools) if may_answer else None
        """The word for no tool; `None` where a tool has to be called."""

    def schema(self, *, loose: bool = False) -> dict[str, Any]:
        """Return the schema that admits these choices only; if `loose`, with any object as arguments."""
        options = [
            _object(tool={"enum": [tool.name]}, arguments=ANY_OBJECT if loose else _arguments(tool))
            for tool in self.tools
        ]
        if self.none is not None:
            options.append(_object(tool={"enum": [self.none]}))
        return options[0] if len(options) == 1 else {"anyOf": options}

    def samples(self) -> list[Turn]:
        """Return exchanges that show the form: what each tool is for, between small talk that needs no tool."""
        exchanges = [(tool.description or tool.name, _sample_call(tool)) for tool in self.tools[:_MOST_SAMPLES]]
        if self.none is not None:
            first, last = ((talk, _compact({"tool": self.none})) for talk in SMALL_TALK)
            exchanges = [first, *exchanges, last]
        return [turn for asked, said in exchanges for turn in (Turn("user", asked), Turn("assistant", said))]

    def read(self, text: str, *, cut_off: bool, forced: bool) -> Choice:
        """Return the choice in what the model wrote.

        `forced` says that a grammar was in force: then the text is one choice or broken. Else prose around the
        object, several calls, and the forms that models know from elsewhere are taken as well.

        Raises:
            Unusable: there is no choice in it, or one of something that was not offered.
        """
        text = text.strip()
        looks_like_json = text.startswith(("{", "[", "`"))
        if cut_off and (forced or looks_like_json):
            raise Unusable("it was too long and cut off")
        objects = list(_objects(find_json(text)))
        if not objects:
            if self.none is not None and text and not forced and not looks_like_json:
                return Choice(text=text)
            raise Unusable("there is no JSON object in it", meant_a_call=looks_like_json)
        if self.none is not None and all(value.get("tool") == self.none for value in objects):
            return Choice()
        calls = [call for value in objects if (call := self._call(value)) is not None]
        if not calls:
            raise Unusable('it is no tool call: "tool" is missing', meant_a_call=self.none is None)
        return Choice(calls=calls[:1] if forced else calls)

    def _call(self, value: dict[str, Any]) -> ChosenCall | None:
        inner = value.get("function")
        if isinstance(inner, dict):
            value = inner
        name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
        if name is None or name == self.none:
            return None
        given = next((value[key] for key in _ARGUMENT_KEYS if key in value), None)
        if all(tool.name != name for tool in self.tools):
            names = ", ".join(tool.name for tool in self.tools)
            raise Unusable(f"there is no tool named {name!r}; the tools are: {names}", meant_a_call=given is not None)
        return ChosenCall(name, _as_object(given))


def _objects(values: list[Any]) -> Iterator[dict[str, Any]]:
    for value in values:
        if isinstance(value, dict):
            yield value
        elif isinstance(value, list):
            yield from (part for part in value if isinstance(part, dict))


def _as_object(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else None
        except ValueError:
            raise Unusable('its "arguments" are no JSON object') from None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Unusable('its "arguments" are no JSON object')
    return given


def _word_for_none(tools: Sequence[ToolSpec]) -> str:
    names = {tool.name for tool in tools}
    word = "none"
    while word in names:
        word = f"no_{word}"
    return word


def _arguments(tool: ToolSpec) -> dict[str, Any]:
    schema = grammar_schema(tool.parameters)
    return schema if schema.get("type") == "object" or "anyOf" in schema else ANY_OBJECT


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _sample_call(tool: ToolSpec) -> str:
    return _compact({"tool": tool.name, "arguments": _sample(_arguments(tool), tool.name)})


def _sample(schema: dict[str, Any], name: str) -> Any:
    """Return a value of the kind that a simplified schema admits, for the eye only."""
    if "anyOf" in schema:
        return _sample(schema["anyOf"][0], name)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties", {})
        return {key: _sample(properties[key], key) for key in schema.get("required", ())}
    plain: dict[Any, Any] = {"array": [], "integer": 7, "number": 7, "boolean": True, "null": None}
    return plain.get(kind, name)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
