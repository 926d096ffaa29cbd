"""How a log writes objects: messages, and the dataclasses, enums and models that were registered.

An object is written as its fields, without those that have their default. It is read by setting the fields: no
constructor, validator or other code of the class runs.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from copy import deepcopy
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any

from pydantic_core import PydanticUndefined

from graphwright.exceptions import ConfigurationError
from graphwright.runlog._walk import ATOMS, DECODERS, ENCODERS, FINDERS, Unstorable, encode, encode_map

__all__ = ["add_class"]

_EMPTY = (list, dict, set, tuple, frozenset, str)
_NONE: Any = object()


def add_class(cls: type, word: str) -> None:
    """Let values of exactly this class be written, marked with `word`.

    Raises:
        ConfigurationError: it is no dataclass, enum or pydantic model.
    """
    if issubclass(cls, enum.Enum):
        _add_enum(cls, word)
    elif is_dataclass(cls):
        _add_dataclass(cls, word)
    elif hasattr(cls, "model_fields") and hasattr(cls, "__pydantic_validator__"):
        _add_model(cls, word)
    else:
        raise ConfigurationError(
            f"{cls.__module__}.{cls.__qualname__} is no dataclass, enum or pydantic model; "
            "give to_data= and from_data= to register it"
        )


def _add_enum(cls: Any, word: str) -> None:
    if issubclass(cls, enum.Flag):
        ENCODERS[cls] = lambda value, depth: {"$": word, "v": value.value}
        DECODERS[word] = lambda data: cls(data["v"])
    else:
        ENCODERS[cls] = lambda value, depth: {"$": word, "v": value.name}
        DECODERS[word] = lambda data: cls[data["v"]]


def _add_dataclass(cls: Any, word: str) -> None:
    if cls.__new__ is not object.__new__:
        raise ConfigurationError(
            f"{cls.__module__}.{cls.__qualname__} has a constructor of its own; "
            "give to_data= and from_data= to register it"
        )
    known = {field.name: _Field(field.default, field.default_factory) for field in fields(cls)}

    def write(value: Any, depth: int) -> dict[str, Any]:
        return _write_fields(word, ((name, getattr(value, name)) for name in known), known, value, depth)

    def read(data: dict[str, Any]) -> Any:
        made = object.__new__(cls)
        for name, item in _values(cls, data, known).items():
            object.__setattr__(made, name, item)
        return made

    ENCODERS[cls] = write
    DECODERS[word] = read


def _add_model(cls: Any, word: str) -> None:
    known = {name: _Field(field.default, field.default_factory) for name, field in cls.model_fields.items()}
    open_ended = cls.model_config.get("extra") == "allow"

    def write(value: Any, depth: int) -> dict[str, Any]:
        held = [(name, item) for name, item in value.__dict__.items() if name in known]
        out = _write_fields(word, held, known, value, depth)
        for key, inner in (("$extra", value.__pydantic_extra__), ("$private", value.__pydantic_private__)):
            if inner:
                try:
                    out[key] = encode_map(inner, depth + 1)
                except Unstorable as problem:
                    problem.add(f" {key[1:]} field ", value)
                    raise
        return out

    def read(data: dict[str, Any]) -> Any:
        extra = data.pop("$extra", {} if open_ended else None)
        private = data.pop("$private", None)
        named = data.keys() - {"$"}
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", _values(cls, data, known))
        object.__setattr__(made, "__pydantic_fields_set__", set(named))
        object.__setattr__(made, "__pydantic_extra__", extra)
        object.__setattr__(made, "__pydantic_private__", private)
        return made

    ENCODERS[cls] = write
    DECODERS[word] = read


class _Field:
    """One field: how its default is made, and which value need not be written."""

    __slots__ = ("make", "skip")

    def __init__(self, default: Any, factory: Any) -> None:
        self.make: Callable[[], Any] | None = None
        self.skip: Any = _NONE
        if factory is not None and factory is not MISSING:
            self.make = factory
            if factory in _EMPTY:
                self.skip = factory()
        elif default is not MISSING and default is not PydanticUndefined:
            self.make = partial(deepcopy, default)
            if type(default) in ATOMS:
                self.skip = default


def _write_fields(word: str, held: Any, known: dict[str, _Field], owner: Any, depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {"$": word}
    name = ""
    try:
        for name, item in held:
            kind = type(item)
            default = known[name].skip
            if default is item or (kind is type(default) and item == default and not _is_negative_zero(item)):
                continue
            out[name] = item if kind in ATOMS else encode(item, depth + 1)
    except Unstorable as problem:
        problem.add(f".{name}", owner)
        raise
    return out


def _is_negative_zero(value: Any) -> bool:
    return type(value) is float and not value and str(value) == "-0.0"


def _values(cls: type, data: dict[str, Any], known: dict[str, _Field]) -> dict[str, Any]:
    """Return the value of every field: the written one, else the default."""
    del data["$"]
    values = {}
    for name, field in known.items():
        if name in data:
            values[name] = data.pop(name)
        elif field.make is not None:
            values[name] = field.make()
        else:
            raise ConfigurationError(f"the log has a {cls.__qualname__} without its field {name!r}; it cannot be read")
    if data:
        raise ConfigurationError(
            f"the log has a {cls.__qualname__} with the unknown field {next(iter(data))!r}; "
            "read it with the version of the code that wrote it"
        )
    return values


_MESSAGES = {
    "AIMessage": "ai",
    "HumanMessage": "human",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "ChatMessage": "chat",
    "FunctionMessage": "function",
    "RemoveMessage": "remove",
}


def _add_messages() -> None:
    """Make the message classes known; done when the first one is written or read, as it imports them."""
    import langchain_core.messages as found
    from langchain_core.messages.base import TextAccessor

    for name, word in _MESSAGES.items():
        add_class(getattr(found, name), word)
        chunk = getattr(found, f"{name}Chunk", None)
        if chunk is not None:
            add_class(chunk, f"{word}+")
    # What `message.text` gives: a text in every respect but its deprecated call.
    ENCODERS[TextAccessor] = lambda value, depth: str(value)


def _find_message(cls: type) -> bool:
    if not cls.__module__.startswith("langchain_core.messages"):
        return False
    _add_messages()
    return cls in ENCODERS


def _read_message(data: dict[str, Any]) -> Any:
    word = data["$"]
    _add_messages()
    return DECODERS[word](data)


FINDERS.append(_find_message)
for _word in _MESSAGES.values():
    DECODERS[_word] = DECODERS[f"{_word}+"] = _read_message
