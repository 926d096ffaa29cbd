"""LangChain's tools behind our port: arguments checked in our words, blocking ones in our own threads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import Tool as SingleInputTool
from langchain_core.tools.base import get_all_basemodel_annotations
from langchain_core.utils.pydantic import is_pydantic_v1_subclass
from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError

from graphwright.exceptions import ConfigurationError, ToolArgumentError, ToolError
from graphwright.tools.base import Tool
from graphwright.tools.function import checked_timeout
from graphwright.tools.hints import injected_as
from graphwright.tools.json_schema import schema_problems
from graphwright.tools.problems import UNKNOWN, Problem, check, pydantic_problems
from graphwright.tools.schema import CompactSchema, object_schema
from graphwright.types import ToolCall, ToolSpec

__all__ = ["LangChainTool"]

_Attempt = Callable[[dict[str, Any]], "dict[str, Any] | list[Problem]"]


class LangChainTool(Tool):
    """A LangChain tool. What it returns is what LangChain makes of it, content and artifact included.

    The arguments reach LangChain as the model wrote them, for it reads them once more by itself; a check here comes
    first, so that a model is told of mistakes in the same words as for any other tool.
    """

    reports_itself = True

    def __init__(
        self,
        tool: BaseTool,
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self.tool = tool
        name = tool.name if name is None else name
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"the LangChain tool {tool!r} has no name; give it one")
        parameters, self._attempt = _reading_of(tool, name)
        self.spec = ToolSpec(
            name=name,
            description=(tool.description or "") if description is None else description,
            parameters=parameters,
        )
        self.other_names = (tool.name,) if tool.name != name else ()
        self.injected = _injected_of(tool)
        self.timeout = checked_timeout(timeout, name)
        self.blocking = _is_blocking(tool)

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as LangChain is given them: without nulls that mean "not given", else unchanged."""
        if self._attempt is None:
            return args
        try:
            return check(self.name, args, self._attempt)
        except ToolArgumentError:
            if self.tool.handle_validation_error:
                return args  # the tool has words of its own for this
            raise

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Run a tool that has an async side."""
        try:
            return await self.tool.ainvoke(self._input(args, call), cast("Any", _for_one_call(config)))
        except ValidationError as error:
            raise self._told(error, args) from error

    def run_blocking(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Run a tool that has only a blocking side."""
        try:
            return self.tool.invoke(self._input(args, call), cast("Any", _for_one_call(config)))
        except ValidationError as error:
            raise self._told(error, args) from error

    def _input(self, args: dict[str, Any], call: ToolCall) -> Any:
        return {"type": "tool_call", "name": self.tool.name, "args": args, "id": call.id}

    def _told(self, error: ValidationError, args: dict[str, Any]) -> Exception:
        """Return the error to raise: ours, when it is about the arguments of this tool."""
        schema = self.tool.args_schema
        if not (isinstance(schema, type) and error.title == schema.__name__):
            return error
        problems = pydantic_problems(error, args, ())
        owed = sorted({str(problem.path[0]) for problem in problems if problem.path} & self.injected)
        if owed:
            return ToolError(f"{self.name!r} cannot run: the program has to give it {', '.join(owed)}, and did not")
        return ToolArgumentError(self.name, [problem.line() for problem in problems])

    def replaced(
        self, *, name: str | None = None, description: str | None = None, timeout: float | None = None
    ) -> LangChainTool:
        """Return the same tool with another name, description or timeout."""
        return LangChainTool(
            self.tool,
            name=self.name if name is None else name,
            description=self.spec.description if description is None else description,
            timeout=self.timeout if timeout is None else timeout,
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LangChainTool)
            and self.tool is other.tool
            and (self.spec, self.timeout) == (other.spec, other.timeout)
        )

    def __hash__(self) -> int:
        return hash((id(self.tool), self.spec.name))

    def __repr__(self) -> str:
        return f"LangChainTool({self.name!r}, {type(self.tool).__module__}.{type(self.tool).__qualname__})"


def _for_one_call(config: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the caller's config without what can name only one run."""
    if config and ("run_id" in config or "run_name" in config):
        return {key: value for key, value in config.items() if key not in ("run_id", "run_name")}
    return config


def _is_blocking(tool: BaseTool) -> bool:
    """Whether LangChain itself would have to run the tool in a thread."""
    own = type(tool)._arun
    if own is BaseTool._arun:
        return True
    if own in (StructuredTool._arun, SingleInputTool._arun):
        return getattr(tool, "coroutine", None) is None
    return False


def _injected_of(tool: BaseTool) -> frozenset[str]:
    schema: Any = tool.args_schema
    return frozenset(_injected(schema)) if isinstance(schema, type) else frozenset()


def _reading_of(tool: BaseTool, name: str) -> tuple[dict[str, Any], _Attempt | None]:
    """Return the JSON schema of a tool's arguments, and what checks them (`None`: nothing is known of them)."""
    schema: Any = tool.args_schema
    if isinstance(schema, Mapping):
        parameters = object_schema(schema)
        return parameters, _by_json_schema(parameters, name)
    if schema is None:
        if isinstance(tool, SingleInputTool):
            parameters = object_schema({"properties": {"tool_input": {"type": "string"}}, "required": ["tool_input"]})
            return parameters, _by_json_schema({**parameters, "additionalProperties": False}, name)
        kinds = {parameter.kind for parameter in inspect.signature(tool._run).parameters.values()}
        if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            return object_schema({}), None
    try:
        shown: Any = tool.tool_call_schema
        if is_pydantic_v1_subclass(shown):
            parameters = object_schema(shown.schema())
        else:
            parameters = object_schema(shown.model_json_schema(schema_generator=CompactSchema))
        return parameters, _by_model(cast("Any", tool.get_input_schema()), shown)
    except Exception as error:  # a schema class is foreign code
        raise ConfigurationError(f"the arguments of tool {name!r} cannot be described: {error}") from error


def _by_json_schema(schema: Mapping[str, Any], name: str) -> _Attempt:
    problems: Callable[[Mapping[str, Any]], list[Problem]] | None = None

    def attempt(args: dict[str, Any]) -> dict[str, Any] | list[Problem]:
        nonlocal problems
        if problems is None:
            problems = schema_problems(schema, name)
        return problems(args) or args

    return attempt


def _by_model(full: type[Any], shown: type[Any]) -> _Attempt:
    """Return the check against a pydantic model: the whole one where a model can fill it, else what is shown of it."""
    injected = _injected(full)
    fill = {key: "" for key, only_id in injected.items() if only_id}
    model = full if len(fill) == len(injected) else shown
    filled = fill if model is full else {}
    version_1 = is_pydantic_v1_subclass(model)
    read: Callable[[dict[str, Any]], Any] = model.parse_obj if version_1 else model.model_validate
    errors: tuple[type[Exception], ...] = (_error_of_version_1(),) if version_1 else (ValidationError,)
    known = _names(shown)
    closed = not version_1 and model.model_config.get("extra") is None

    def attempt(args: dict[str, Any]) -> dict[str, Any] | list[Problem]:
        problems = [Problem((key,), UNKNOWN, known=known) for key in args if closed and key not in known]
        problems += [Problem((key,), UNKNOWN, known=known) for key in args if key in injected and not closed]
        try:
            read({**args, **filled} if filled else args)
        except errors as error:
            problems += pydantic_problems(error, args, known)
        return problems or args

    return attempt


def _error_of_version_1() -> type[Exception]:
    from pydantic.v1 import ValidationError as ErrorV1

    return ErrorV1


def _injected(model: type[Any]) -> dict[str, bool]:
    """Return the fields that are no business of a model's -> whether it is only the call's id that they take."""
    found = {}
    for key, hint in get_all_basemodel_annotations(model).items():
        marked = injected_as(hint)
        if marked is not None:
            found[key] = marked == "call_id"
    return found


def _names(model: type[Any]) -> tuple[str, ...]:
    """Return every name under which a field of the model can be given."""
    if not issubclass(model, BaseModel):
        return tuple(model.__fields__)
    names: dict[str, None] = {}
    for key, field in model.model_fields.items():
        names[key] = None
        for alias in (field.alias, field.validation_alias):
            for choice in alias.choices if isinstance(alias, AliasChoices) else (alias,):
                first = choice.path[0] if isinstance(choice, AliasPath) else choice
                if isinstance(first, str):
                    names[first] = None
    return tuple(names)
