"""Tools as a bot takes them: whatever looks like one, and the tool that loads a skill."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from graphwright.exceptions import ConfigurationError, ToolArgumentError, ToolError
from graphwright.orchestrator.skills import Skill, load_skill_spec, skill_body
from graphwright.tools import Tool, argument_problems, as_tool
from graphwright.types import ToolCall, ToolSpec

__all__ = ["DuckTool", "LoadSkillTool", "as_bot_tool"]


def as_bot_tool(value: Any) -> Tool:
    """Return a tool made from a function, a LangChain tool, a tool, or an object that looks like one.

    Raises:
        ConfigurationError: it is none of these.
    """
    if _looks_like_tool(value):
        return DuckTool(value)
    return as_tool(value)


def _looks_like_tool(value: Any) -> bool:
    if isinstance(value, (Tool, type)) or inspect.isroutine(value) or "langchain" in type(value).__module__:
        return False
    if any("langchain_core" in kind.__module__ for kind in type(value).__mro__):
        return False
    return isinstance(getattr(value, "name", None), str) and any(
        callable(getattr(value, name, None)) for name in ("ainvoke", "_arun", "invoke", "_run")
    )


class DuckTool(Tool):
    """An object with `name`, `description`, `args_schema`, and `ainvoke` or `invoke`."""

    def __init__(self, tool: Any) -> None:
        self.tool = tool
        self._schema = getattr(tool, "args_schema", None)
        description = getattr(tool, "description", "")
        self.spec = ToolSpec(
            name=tool.name,
            description=description if isinstance(description, str) else "",
            parameters=_parameters(self._schema, tool.name),
        )
        self._method = _method_of(tool)
        self.blocking = self._method in ("invoke", "_run")
        for name in ("idempotent", "reenterable", "untrusted"):
            if getattr(tool, name, None) is True:
                setattr(self, name, True)

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments, checked by the object's own schema.

        Raises:
            ToolArgumentError: they do not fit.
        """
        problems = argument_problems(self.spec.parameters, args) if self._schema is not None else []
        if problems:
            raise ToolArgumentError(self.name, problems)
        return args

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Call the object."""
        value = self._call(args)
        return await value if inspect.isawaitable(value) else value

    def run_blocking(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Call an object that has no async side."""
        return self._call(args)

    def _call(self, args: dict[str, Any]) -> Any:
        method = getattr(self.tool, self._method)
        return method(**args) if self._method.startswith("_") else method(args)

    def __repr__(self) -> str:
        return f"DuckTool({self.name!r})"


class LoadSkillTool(Tool):
    """Gives the model the instructions of a skill; its tools can be called from then on."""

    risk_level = 0
    idempotent = True

    def __init__(self, skills: Sequence[Skill]) -> None:
        self._skills = list(skills)
        self.spec = load_skill_spec(self._skills)

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments.

        Raises:
            ToolArgumentError: they do not fit.
        """
        if not isinstance(args.get("name"), str) or len(args) > 1:
            raise ToolArgumentError(self.name, [f"name: should be the name of a skill, and nothing else, not {args!r}"])
        return args

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> str:
        """Return the instructions of the skill."""
        body = skill_body(self._skills, args["name"])
        if not any(skill.name == args["name"] for skill in self._skills):
            raise ToolError(body)
        return body


def _method_of(tool: Any) -> str:
    for name in ("ainvoke", "_arun", "invoke", "_run"):
        if callable(getattr(tool, name, None)):
            return name
    raise ConfigurationError(f"{tool!r} cannot be called; give it ainvoke(args)")


def _parameters(schema: Any, name: str) -> dict[str, Any]:
    empty = {"type": "object", "properties": {}}
    if isinstance(schema, dict):
        return {"type": "object", **schema}
    if isinstance(schema, type) and hasattr(schema, "model_json_schema"):
        made: dict[str, Any] = schema.model_json_schema()
        return made
    return empty
