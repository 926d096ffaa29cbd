"""Read a function's signature, hints and docstring into what a model is told and how arguments are checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NotRequired, cast
from weakref import WeakKeyDictionary

from pydantic import AliasChoices, ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from graphwright.exceptions import ConfigurationError
from graphwright.tools.hints import first_sentence, injected_as, read_docstring, resolve, text_in
from graphwright.tools.problems import Problem, pydantic_problems

__all__ = ["CompactSchema", "FunctionSchema", "function_schema", "object_schema"]


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """What is known of a function's parameters. It is made once per function and holds no reference to it."""

    description: str

    parameters: dict[str, Any]
    """JSON schema of the arguments."""

    validate: Callable[[dict[str, Any]], dict[str, Any]]
    """Return the arguments as the function takes them, by parameter name, or raise pydantic's error."""

    known: tuple[str, ...]
    """The names that a model may use."""

    positional: tuple[tuple[str, Any], ...]
    """Parameters that are passed by place, with their defaults."""

    injected: frozenset[str]
    """Parameters that no model fills."""

    call_ids: tuple[str, ...]
    """Those of them that take the id of the call."""

    def attempt(self, args: dict[str, Any]) -> dict[str, Any] | list[Problem]:
        """Return the validated arguments, or the problems with them."""
        try:
            return self.validate(args)
        except ValidationError as error:
            return pydantic_problems(error, args, self.known)


class CompactSchema(GenerateJsonSchema):
    """JSON schema without the titles that only repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave every title out that nobody wrote."""
        return False


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's JSON schema as providers take it: an object with properties, without a title of its own."""
    parameters = {key: value for key, value in schema.items() if key not in ("title", "description")}
    parameters["type"] = "object"
    if not isinstance(parameters.get("properties"), Mapping):
        parameters["properties"] = {}
    return parameters


_cache: WeakKeyDictionary[Callable[..., Any], dict[bool, FunctionSchema]] = WeakKeyDictionary()


def function_schema(function: Callable[..., Any], name: str) -> FunctionSchema:
    """Return the schema of a function, a bound method or a `functools.partial`.

    Raises:
        ConfigurationError: a parameter cannot be given by a model, or its type cannot be found.
    """
    bound = inspect.ismethod(function)
    key = cast("Callable[..., Any]", function.__func__) if bound else function  # type: ignore[attr-defined]
    try:
        known = _cache.get(key)
    except TypeError:  # no weak reference to it can be made
        return _read(function, name)
    if known is not None and bound in known:
        return known[bound]
    schema = _read(function, name)
    _cache.setdefault(key, {})[bound] = schema
    return schema


@dataclass(slots=True)
class _Signature:
    """The parameters of one function, sorted by who fills them."""

    shown: list[inspect.Parameter]
    """Those that a model fills."""

    hints: dict[str, Any]
    """Their types, by parameter name."""

    injected: dict[str, str]
    """Those that no model fills -> as what they are marked."""

    extras: Any = None
    """The type of further keywords; `None` where the function takes none."""


def _read(function: Callable[..., Any], name: str) -> FunctionSchema:
    signature = _read_signature(function, name)
    shown = signature.shown
    items = {parameter.name: _item(signature.hints[parameter.name], parameter) for parameter in shown}
    keys = {parameter.name: _key(signature.hints[parameter.name], parameter) for parameter in shown}
    adapter = _adapter(name, items, allow_extra=signature.extras is not None)
    schema = _json_schema(adapter, name, items)
    description, texts = read_docstring(function)
    for parameter in shown:
        entry = schema["properties"].get(keys[parameter.name])
        if entry is not None:
            text = text_in(signature.hints[parameter.name]) or texts.get(parameter.name)
            _annotate(entry, text, parameter.default)
    return FunctionSchema(
        description=description,
        parameters=schema,
        validate=_with_extras(adapter, signature.extras, name, frozenset(items)),
        known=tuple(keys.values()),
        positional=tuple((entry.name, entry.default) for entry in shown if entry.kind is entry.POSITIONAL_ONLY),
        injected=frozenset(signature.injected),
        call_ids=tuple(key for key, kind in signature.injected.items() if kind == "call_id"),
    )


def _read_signature(function: Callable[..., Any], name: str) -> _Signature:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"tool {name!r}: the parameters of {function!r} cannot be read; wrap it in a function of your own"
        ) from error
    given = function.keywords.keys() if isinstance(function, partial) else ()
    found = _Signature([], {}, {})
    for parameter in parameters:
        if parameter.name in given:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise ConfigurationError(
                f"tool {name!r} takes *{parameter.name}, which a model cannot fill; take a list instead"
            )
        hint = resolve(function, parameter, name)
        mark = injected_as(hint)
        if parameter.kind is parameter.VAR_KEYWORD:
            found.extras = hint
        elif mark is not None:
            found.injected[parameter.name] = mark
        else:
            found.shown.append(parameter)
            found.hints[parameter.name] = hint
    return found


def _item(hint: Any, parameter: inspect.Parameter) -> Any:
    """Return the TypedDict item of a parameter: its hint, and whether it may be left out."""
    item = Annotated[hint, parameter.default] if isinstance(parameter.default, FieldInfo) else hint
    infos = list(_field_infos(hint, parameter))
    if any(not info.is_required() for info in infos):
        return NotRequired[item]
    plain_default = parameter.default is not parameter.empty and not isinstance(parameter.default, FieldInfo)
    return NotRequired[item] if plain_default else item


def _field_infos(hint: Any, parameter: inspect.Parameter) -> Iterator[FieldInfo]:
    if isinstance(parameter.default, FieldInfo):
        yield parameter.default
    for entry in getattr(hint, "__metadata__", ()):
        if isinstance(entry, FieldInfo):
            yield entry


def _key(hint: Any, parameter: inspect.Parameter) -> str:
    """Return the name that the model uses for a parameter: its alias, or its own."""
    for info in _field_infos(hint, parameter):
        alias = info.validation_alias or info.alias
        if isinstance(alias, AliasChoices):
            alias = alias.choices[0]
        if isinstance(alias, str):
            return alias
    return parameter.name


def _adapter(name: str, items: dict[str, Any], *, allow_extra: bool) -> TypeAdapter[dict[str, Any]]:
    try:
        return _build(name, items, allow_extra=allow_extra)
    except Exception as error:  # pydantic's many errors, and those of a type's own schema hooks
        raise _culprit(name, items, error) from error


def _build(name: str, items: dict[str, Any], *, allow_extra: bool) -> TypeAdapter[dict[str, Any]]:
    make: Any = TypedDict  # a type checker wants it spelt out
    shape = make(f"{name}_arguments", items)
    shape.__pydantic_config__ = ConfigDict(
        extra="allow" if allow_extra else "forbid", validate_by_name=True, validate_by_alias=True
    )
    adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
    if not adapter.pydantic_complete:
        raise PydanticUserError("a type inside it is not defined yet", code="class-not-fully-defined")
    return adapter


def _json_schema(adapter: TypeAdapter[dict[str, Any]], name: str, items: dict[str, Any]) -> dict[str, Any]:
    try:
        return object_schema(adapter.json_schema(schema_generator=CompactSchema))
    except Exception as error:  # as in _adapter
        raise _culprit(name, items, error) from error


def _culprit(name: str, items: dict[str, Any], error: Exception) -> ConfigurationError:
    """Return the error to raise when parameters cannot be described, naming the one that is to blame."""
    for item_name, item in items.items():
        try:
            _build(name, {item_name: item}, allow_extra=False).json_schema()
        except Exception as cause:  # as in _adapter
            return ConfigurationError(
                f"parameter {item_name!r} of tool {name!r} has a type that a model cannot fill: "
                f"{first_sentence(cause)}; use str, int, float, bool, list, dict, Literal, an Enum, a pydantic model, "
                "a dataclass or a TypedDict"
            )
    return ConfigurationError(f"tool {name!r} has parameters that cannot be described: {first_sentence(error)}")


def _with_extras(
    adapter: TypeAdapter[dict[str, Any]], extras: Any, name: str, named: frozenset[str]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    validate = cast("Callable[[dict[str, Any]], dict[str, Any]]", adapter.validator.validate_python)
    if extras is None or extras is Any:
        return validate
    check_extras = _adapter(name, {"**": dict[str, extras]}, allow_extra=False).validator.validate_python

    def validate_all(args: dict[str, Any]) -> dict[str, Any]:
        found = validate(args)
        rest = {key: value for key, value in found.items() if key not in named}
        if rest:
            found.update(check_extras({"**": rest})["**"])
        return found

    return validate_all


def _annotate(entry: dict[str, Any], text: str | None, default: Any) -> None:
    """Add to the schema of a parameter what pydantic does not know: words, and a plain default."""
    if text:
        entry.setdefault("description", text)
    if default is not inspect.Parameter.empty and default is not None and not isinstance(default, FieldInfo):
        with suppress(ValueError):  # a default that only Python can make is not shown
            entry.setdefault("default", to_jsonable_python(default))
