"""The text in which a run log keeps its values: JSON, with a mark for what JSON does not have.

Reading makes data only: nothing that the text names is imported or called. Messages, the common types of the standard
library, and the classes of this package that a run writes are known; a class of your own is made known by `register`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import graphwright.runlog._plain_types  # noqa: F401  fills the tables
from graphwright.exceptions import ConfigurationError, StoreUnavailable, UnstorableError
from graphwright.interrupts import ApprovalDecision, Interrupt
from graphwright.runlog._plain_objects import add_class
from graphwright.runlog._walk import ATOMS, DECODERS, ENCODERS, FINDERS, Unstorable, careful, encode
from graphwright.types import ToolCall, ToolResult
from graphwright.usage import Usage

__all__ = ["FORMAT", "dumps", "loads", "register"]

FORMAT = 1
"""The number of this way of writing. A later one would begin its texts with `#` and its number, as no JSON does."""

C = TypeVar("C", bound=type)

_write = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")).encode
_names: dict[str, type] = {}


def register(
    cls: C,
    name: str,
    *,
    to_data: Callable[[Any], Any] | None = None,
    from_data: Callable[[Any], Any] | None = None,
) -> C:
    """Let values of exactly this class be kept, under a name that must stay the same as long as logs hold it.

    A dataclass, enum or pydantic model needs nothing more: it is written as its fields and read by setting them,
    without a call of its constructor. Any other class needs both functions.

    Raises:
        ConfigurationError: the name stands for another class, or the class is of another kind.
    """
    known = _names.get(name)
    if known is cls:
        return cls
    if known is not None:
        raise ConfigurationError(f"the name {name!r} stands for {known!r} in run logs; register {cls!r} under another")
    if cls in ENCODERS or any(find(cls) for find in FINDERS):
        raise ConfigurationError(f"{cls!r} is known to run logs already; {name!r} would be a second name for it")
    if (to_data is None) != (from_data is None):
        raise ConfigurationError(f"register {cls!r} with both to_data= and from_data=, or with neither")
    word = f"@{name}"
    if to_data is not None and from_data is not None:
        write, read = to_data, from_data
        ENCODERS[cls] = lambda value, depth: {"$": word, "v": encode(write(value), depth + 1)}
        DECODERS[word] = lambda data: read(data["v"])
    else:
        add_class(cls, word)
    _names[name] = cls
    return cls


def dumps(value: Any, *, where: str = "data") -> str:
    """Return a value as text; `where` is what an error calls it.

    Raises:
        UnstorableError: something in it cannot be kept; the message names the place and the type.
    """
    try:
        plain = value if type(value) in ATOMS else encode(value, 0)
    except Unstorable as problem:
        raise UnstorableError(problem.describe(where)) from None
    try:
        text = _write(plain)
        if not text.isascii():
            text.encode()
    except ValueError:
        text = _write(careful(plain))
    return text


def loads(text: str) -> Any:
    """Return the value that a text holds.

    Raises:
        ConfigurationError: it holds something of a class that is not registered here.
        StoreUnavailable: it is damaged.
    """
    if text.startswith("#"):
        raise ConfigurationError(f"the text begins with {text[:8]!r}, so a newer version wrote it; read it with that")
    try:
        return _read(text)
    except ConfigurationError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise StoreUnavailable(f"a log holds {text[:80]!r}, which is damaged; restore it from a copy") from error


def _revive(data: dict[str, Any]) -> Any:
    if "$" not in data:
        return data
    decoder = DECODERS.get(data["$"])
    if decoder is not None:
        return decoder(data)
    word = str(data["$"])
    if word.startswith("@"):
        raise ConfigurationError(
            f"the log holds something of the class named {word[1:]!r}, which is not known here; import the module that "
            "registers it with graphwright.runlog.codec.register before reading"
        )
    raise ConfigurationError(f"the log holds something marked {word!r}, which this version does not know; use a newer")


_read = json.JSONDecoder(object_hook=_revive).decode

for _class in (ToolCall, ToolResult, Usage, Interrupt, ApprovalDecision):
    register(_class, _class.__name__)
