"""Write what a node is configured with as plain data, and read it back, without ever running what the data names.

Data that JSON has is written as it is. `{"$node": ...}` and `{"$graph": ...}` are a node and a graph inside another,
`{"$condition": ...}` is a condition, `{"$compaction": ...}` the settings of a compaction, and
`{"$import": "package.module:name"}` is an object that is imported, where that is allowed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any, get_args

from graphwright.engine.base import BaseNode
from graphwright.engine.compaction import ContextCompaction
from graphwright.engine.condition import ResultCondition, parse_condition
from graphwright.engine.edges import ConditionKind, EdgeCondition
from graphwright.engine.graph import PromptGraph
from graphwright.exceptions import ConfigurationError, GraphSerializationError

__all__ = ["decode", "decode_condition", "encode", "encode_condition", "refuse_unknown"]


def encode(value: Any, where: str, allow_imports: Iterable[str]) -> Any:
    """Return `value` as data; `where` names it in the error of one that is none.

    Raises:
        GraphSerializationError: the value cannot be written without losing something.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, BaseNode):
        from graphwright.engine.from_config import node_to_config

        return {"$node": node_to_config(value, allow_imports=allow_imports)}
    if isinstance(value, PromptGraph):
        from graphwright.engine.from_config import graph_to_config

        return {"$graph": graph_to_config(value, allow_imports=allow_imports)}
    if isinstance(value, (EdgeCondition, ResultCondition)):
        return {"$condition": encode_condition(value, where, allow_imports)}
    if type(value) is ContextCompaction:
        changed = {f.name: getattr(value, f.name) for f in fields(value) if getattr(value, f.name) != f.default}
        return {"$compaction": encode(changed, where, allow_imports)}
    if type(value) is dict:
        return _encode_dict(value, where, allow_imports)
    if type(value) in (list, tuple):
        return [encode(item, f"{where}[{index}]", allow_imports) for index, item in enumerate(value)]
    if type(value) in (set, frozenset):
        return [encode(item, where, allow_imports) for item in sorted(value)]
    return {"$import": _import_path(value, where, tuple(allow_imports))}


def decode(value: Any, where: str, allow_imports: Iterable[str]) -> Any:
    """Return what data describes.

    Raises:
        ConfigurationError: the data is none of ours.
        GraphSerializationError: it names something to import that is not allowed.
    """
    if isinstance(value, list):
        return [decode(item, f"{where}[{index}]", allow_imports) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        if value is None or type(value) in (bool, int, float, str):
            return value
        raise ConfigurationError(f"{where} is {value!r}, which JSON does not have; write a text, number, list or map")
    mark = next((key for key in value if isinstance(key, str) and key.startswith("$")), None)
    if mark is None:
        return {str(key): decode(item, f"{where}.{key}", allow_imports) for key, item in value.items()}
    held = value[mark]
    if len(value) != 1 or mark not in ("$node", "$graph", "$condition", "$compaction", "$import"):
        raise ConfigurationError(f"{where} has the key {mark!r} that is unknown or not alone: {value!r}")
    if mark == "$import":
        return _imported(held, where, tuple(allow_imports))
    if mark == "$condition":
        return decode_condition(held, where, allow_imports)
    if mark == "$compaction":
        return ContextCompaction(**decode(_known(held, where), where, allow_imports))
    from graphwright.engine.from_config import graph_from_config, node_from_config

    make = node_from_config if mark == "$node" else graph_from_config
    return make(held, allow_imports=allow_imports)


def encode_condition(condition: Any, where: str, allow_imports: Iterable[str]) -> Any:
    """Return a condition as text of the condition language, or as its kind and what that kind needs."""
    if isinstance(condition, ResultCondition):
        return condition.text
    if isinstance(condition, EdgeCondition):
        changed = {
            f.name: getattr(condition, f.name)
            for f in fields(condition)
            if f.default is MISSING
            or getattr(condition, f.name) != f.default
            or type(getattr(condition, f.name)) is not type(f.default)
        }
        return encode(changed, where, allow_imports)
    return {"$import": _import_path(condition, where, tuple(allow_imports))}


def decode_condition(data: Any, where: str, allow_imports: Iterable[str]) -> Any:
    """Return the condition that `encode_condition` wrote."""
    if isinstance(data, str):
        return parse_condition(data)
    if not isinstance(data, dict):
        raise ConfigurationError(f"{where} is {data!r}; write a condition as text, or a map with its 'kind'")
    if "$import" in data:
        return decode(data, where, allow_imports)
    refuse_unknown(data, {"kind", "key", "value", "min_confidence"}, where)
    kinds = get_args(ConditionKind)
    if data.get("kind") not in kinds:
        raise ConfigurationError(f"{where} has the kind {data.get('kind')!r}; use one of {', '.join(kinds)}")
    return EdgeCondition(**decode(data, where, allow_imports))


def refuse_unknown(data: Any, known: Iterable[str], where: str) -> None:
    """Refuse what is no map or has a key that is not known."""
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"{where} is {data!r}; write a map")
    unknown = [key for key in data if key not in set(known)]
    if unknown:
        raise ConfigurationError(f"{where} has the unknown key {unknown[0]!r}; the keys are {', '.join(sorted(known))}")


def _known(data: Any, where: str) -> dict[str, Any]:
    refuse_unknown(data, {field.name for field in fields(ContextCompaction)}, where)
    return dict(data)


def _encode_dict(value: dict[Any, Any], where: str, allow_imports: Iterable[str]) -> dict[str, Any]:
    for key in value:
        if type(key) is not str or key.startswith("$"):
            raise GraphSerializationError(f"{where} has the key {key!r}; data has texts that do not begin with '$'")
    return {key: encode(item, f"{where}.{key}", allow_imports) for key, item in value.items()}


def _import_path(value: Any, where: str, allowed: tuple[str, ...]) -> str:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    path = f"{module}:{name}"
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    for part in name.split(".") if isinstance(name, str) else ("",):
        found = getattr(found, part, None)
    if found is not value or value is None:
        raise GraphSerializationError(
            f"{where} is {value!r}, which data cannot hold; use plain data, or a function or class of a module"
        )
    if not _allows(allowed, path):
        raise GraphSerializationError(
            f"{where} is {path!r}, which would be imported; give allow_imports=[...] with a pattern for it"
        )
    return path


def _imported(path: Any, where: str, allowed: tuple[str, ...]) -> Any:
    if not isinstance(path, str) or path.count(":") != 1 or "__" in path:
        raise ConfigurationError(f"{where} imports {path!r}; write 'package.module:name', without '__'")
    if not _allows(allowed, path):
        raise GraphSerializationError(
            f"{where} imports {path!r}, which is not allowed; give allow_imports=[...] with a pattern for it"
        )
    module, name = path.split(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"{where} imports {path!r}, which is not there: {error}") from error
    return found


def _allows(patterns: tuple[str, ...], path: str) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)
