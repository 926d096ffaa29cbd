"""The schema of a node's answer: shown to the model, and read back from what it wrote."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from graphwright._internal.jsonio import dumps, find_json
from graphwright.exceptions import ConfigurationError, ToolError
from graphwright.tools.base import Tool
from graphwright.types import ToolCall, ToolSpec

__all__ = ["AnswerSchema", "EarlyAnswer", "Unfit"]

ANSWER_LATER = "Not taken: give the final answer alone, after the results of your other calls."


_MAX_PROBLEMS = 10


class Unfit(Exception):
    """What the model wrote does not fit; the text says why, for the model to read."""


class EarlyAnswer(Tool):
    """Stands for the tool by which a model answers, when it is called beside others and cannot know their results."""

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Take any arguments: they are not used."""
        return args

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Tell the model to answer later."""
        raise ToolError(ANSWER_LATER)


class AnswerSchema:
    """A pydantic model, dataclass or TypedDict that an answer has to fit."""

    def __init__(self, schema: Any) -> None:
        from pydantic import TypeAdapter

        if not isinstance(schema, type) and not hasattr(schema, "__annotations__"):
            raise ConfigurationError(
                f"output_schema {schema!r} is no type; give a pydantic model, dataclass or TypedDict"
            )
        self.type = schema
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(schema)
            described = self._adapter.json_schema()
        except Exception as error:  # pydantic raises many classes here
            reason = str(error).split("\n", 1)[0]
            raise ConfigurationError(f"output_schema {schema!r} has no JSON schema: {reason}") from error
        if described.get("type") != "object" and "$ref" not in described:
            raise ConfigurationError(
                f"output_schema {schema!r} is no object; wrap it in a pydantic model with one field"
            )
        self.json_schema: dict[str, Any] = described

    @cached_property
    def description(self) -> str:
        """What the model is told about the answer."""
        return str(self.json_schema.get("description") or f"Give the final answer as {self.type.__name__}.")

    def parse_text(self, text: str) -> Any:
        """Return the instance in a reply: the last JSON object in it that fits.

        Raises:
            Unfit: there is none.
        """
        candidates = [value for value in reversed(find_json(text))]
        if not candidates:
            raise Unfit("there is no JSON object in it")
        objects = [value for value in candidates if isinstance(value, dict)]
        if not objects:
            raise Unfit(f"it is a JSON {type(candidates[0]).__name__}, not an object")
        first: Unfit | None = None
        for value in objects:
            try:
                return self.parse(value)
            except Unfit as problem:
                first = first or problem
        assert first is not None
        raise first

    def parse(self, value: Any) -> Any:
        """Return the instance that `value` describes.

        Raises:
            Unfit: it does not fit.
        """
        from pydantic import ValidationError

        try:
            return self._adapter.validate_json(dumps(value))
        except ValidationError as error:
            lines = [
                f"- {'.'.join(map(str, problem['loc'])) or 'answer'}: {problem['msg']}"
                for problem in error.errors(include_url=False)[:_MAX_PROBLEMS]
            ]
            raise Unfit("\n".join(lines)) from error

    def as_data(self, instance: Any) -> Any:
        """Return an instance as plain data."""
        return self._adapter.dump_python(instance, mode="json")
