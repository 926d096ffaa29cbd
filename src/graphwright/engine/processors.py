"""Functions to give a prompt node as `preprocessor` or `postprocessor`, and two that join several into one.

A preprocessor takes `(state, config)` and returns the state; a postprocessor takes `(output, state, config)` and
returns the output. `None` from either means unchanged.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from graphwright._internal.jsonio import find_json
from graphwright.engine.state import GraphState
from graphwright.exceptions import ConfigurationError

__all__ = [
    "chain_postprocessors",
    "chain_preprocessors",
    "confidence_scorer",
    "context_enricher",
    "input_validator",
    "json_extractor",
    "output_truncator",
    "state_summarizer",
    "state_writer",
]

Preprocessor = Callable[[GraphState, Any], Any]
Postprocessor = Callable[[Any, GraphState, Any], Any]

_HEDGES = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|presumably|likely|might|could be|may be|i think|i believe|i guess|"
    r"i am not sure|i'm not sure|not certain|not sure|unsure|unclear|uncertain|it seems|seems to|appears to|"
    r"as far as i know|roughly|approximately)\b"
)
_LEAST_CONFIDENCE = 0.1


def context_enricher(*, include_timestamp: bool = True, include_iteration: bool = True) -> Preprocessor:
    """Return a preprocessor that notes in the context when and how far into the run the node is.

    It writes `_timestamp` (UTC, ISO 8601), and `_iteration` with `_tools_called`, the number of calls so far.
    """

    def enrich(state: GraphState, config: Any = None) -> GraphState:
        if include_timestamp:
            state.context["_timestamp"] = datetime.now(UTC).isoformat()
        if include_iteration:
            state.context["_iteration"] = state.iteration
            state.context["_tools_called"] = state.tool_calls_made
        return state

    return enrich


def state_summarizer(*, max_context_chars: int = 2000) -> Preprocessor:
    """Return a preprocessor that cuts long texts in the context to their first `max_context_chars` characters."""
    _check_size("max_context_chars", max_context_chars)
    mark = "... (truncated)"

    def shorten(state: GraphState, config: Any = None) -> GraphState:
        for key, value in state.context.items():
            if isinstance(value, str) and len(value) > max_context_chars:
                if len(value) == max_context_chars + len(mark) and value.endswith(mark):
                    continue
                state.context[key] = value[:max_context_chars] + mark
        return state

    return shorten


def input_validator(*, required_keys: Iterable[str]) -> Preprocessor:
    """Return a preprocessor that raises `ValueError` when a key is missing in the context: the node then fails."""
    required = _keys("required_keys", required_keys)

    def validate(state: GraphState, config: Any = None) -> GraphState:
        missing = [key for key in required if key not in state.context]
        if missing:
            raise ValueError(
                f"the context has no {', '.join(map(repr, missing))}; give it with the input, or let a node write it"
            )
        return state

    return validate


def json_extractor(*, keys: Iterable[str] | None = None) -> Postprocessor:
    """Return a postprocessor that replaces a text by the first JSON object in it, or by the first array.

    Braces inside strings do not matter. With `keys`, an object keeps only those. A text without JSON stays as it is.
    """
    wanted = None if keys is None else _keys("keys", keys)

    def extract(output: Any, state: Any = None, config: Any = None) -> Any:
        found = _first_json(output) if isinstance(output, str) else output
        if wanted is not None and isinstance(found, Mapping):
            return {key: found[key] for key in wanted if key in found}
        return found

    return extract


def confidence_scorer() -> Postprocessor:
    """Return a postprocessor that adds `_confidence`, from 0.1 to 1, by the share of hedging words in the text.

    A text becomes `{"text": ..., "_confidence": ...}`, a dict gets the key; anything else stays as it is.
    """

    def score(output: Any, state: Any = None, config: Any = None) -> Any:
        if isinstance(output, str):
            return {"text": output, "_confidence": _confidence(output)}
        if isinstance(output, Mapping):
            text = " ".join(value for value in output.values() if isinstance(value, str))
            return {**output, "_confidence": _confidence(text)}
        return output

    return score


def state_writer(*, fields: Mapping[str, str]) -> Postprocessor:
    """Return a postprocessor that writes fields of the output to keys of the context: `{"field": "key"}`.

    A field that the output does not have leaves its key as it is.
    """
    if not isinstance(fields, Mapping):
        raise ConfigurationError(f"fields is {fields!r}; give a dict of output field -> context key")
    targets = dict(fields)

    def write(output: Any, state: GraphState, config: Any = None) -> Any:
        if isinstance(output, Mapping):
            for field, key in targets.items():
                if field in output:
                    state.context[key] = output[field]
        return output

    return write


def output_truncator(*, max_chars: int = 4000) -> Postprocessor:
    """Return a postprocessor that cuts a text to its first `max_chars` characters and adds `...`."""
    _check_size("max_chars", max_chars)

    def truncate(output: Any, state: Any = None, config: Any = None) -> Any:
        if isinstance(output, str) and len(output) > max_chars:
            return output[:max_chars] + "..."
        return output

    return truncate


def chain_preprocessors(*fns: Preprocessor) -> Preprocessor:
    """Return one preprocessor that runs all of `fns` in order; it is awaited when one of them is."""
    _check_functions(fns)

    def run(state: GraphState, config: Any = None) -> Any:
        return _piped(state, fns, config)

    return run


def chain_postprocessors(*fns: Postprocessor) -> Postprocessor:
    """Return one postprocessor in which each of `fns` gets what the one before it returned."""
    _check_functions(fns)

    def run(output: Any, state: GraphState, config: Any = None) -> Any:
        return _piped(output, fns, state, config)

    return run


def _piped(value: Any, fns: Sequence[Callable[..., Any]], *rest: Any) -> Any:
    for index, fn in enumerate(fns):
        changed = fn(value, *rest)
        if inspect.isawaitable(changed):
            return _piped_async(value, changed, fns[index + 1 :], *rest)
        value = value if changed is None else changed
    return value


async def _piped_async(value: Any, pending: Awaitable[Any], fns: Sequence[Callable[..., Any]], *rest: Any) -> Any:
    changed = await pending
    value = value if changed is None else changed
    for fn in fns:
        changed = fn(value, *rest)
        if inspect.isawaitable(changed):
            changed = await changed
        value = value if changed is None else changed
    return value


def _first_json(text: str) -> Any:
    found = find_json(text)
    return next((value for value in found if isinstance(value, dict)), found[0] if found else text)


def _confidence(text: str) -> float:
    words = len(text.split())
    hedges = len(_HEDGES.findall(text.lower().replace("\u2019", "'")))
    return max(_LEAST_CONFIDENCE, 1 - hedges / max(words, 1) * 10)


def _keys(name: str, keys: Iterable[str]) -> list[str]:
    if isinstance(keys, str):
        raise ConfigurationError(f"{name} is {keys!r}; give a list of keys: [{keys!r}]")
    return list(keys)


def _check_size(name: str, size: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ConfigurationError(f"{name} is {size!r}; give a whole number of characters")


def _check_functions(fns: Iterable[Any]) -> None:
    for fn in fns:
        if not callable(fn):
            raise ConfigurationError(f"processor {fn!r} is not callable; give functions")
