"""What an agent says of itself to its cache, so that its answers are never given for another one's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from graphwright.exceptions import ConfigurationError
from graphwright.runtime import CacheUse

if TYPE_CHECKING:
    from graphwright.cache import SemanticCache
    from graphwright.engine.answer_schema import AnswerSchema
    from graphwright.engine.execution import PromptGraphEngine

__all__ = ["cache_of", "cache_use"]

_MOST_DEEP = 3


def cache_of(cache: Any) -> SemanticCache | None:
    """Return the cache, from the keyword of `build_agent`.

    Raises:
        ConfigurationError: it is none.
    """
    if cache is None or cache is False:
        return None
    from graphwright.cache import SemanticCache

    if cache is True:
        return SemanticCache()
    if not isinstance(cache, SemanticCache):
        raise ConfigurationError(
            f"cache is {cache!r}; give a SemanticCache, or True for one in memory that finds the very same question"
        )
    return cache


def cache_use(
    cache: Any,
    engine: PromptGraphEngine,
    *,
    instructions: str,
    output_schema: AnswerSchema | None,
) -> CacheUse | None:
    """Return how an agent uses the cache that it was given."""
    made = cache_of(cache)
    if made is None:
        return None
    as_data: Callable[[Any], Any] = (lambda output: output) if output_schema is None else output_schema.as_data
    schema = None if output_schema is None else output_schema.json_schema
    known: list[Any] = [None, None, None]

    def setting() -> Any:
        version, tools = engine.graph._version, engine.tools
        if known[0] is not version or known[1] is not tools:
            known[:] = [version, tools, _describe(engine)]
        return [known[2], instructions, schema]

    return CacheUse(cache=made, setting=setting, as_data=as_data, owns_cache=made is not cache)


def _describe(engine: PromptGraphEngine) -> list[Any]:
    graph = engine.graph
    nodes = sorted((name, _plain(vars(node))) for name, node in graph.nodes.items())
    edges = sorted((edge.from_node, edge.to_node, edge.label) for edge in graph.edges)
    tools = sorted((tool.name, tool.spec.description, repr(tool.spec.parameters)) for tool in engine.tools)
    model = [type(engine.model).__qualname__, engine.model.name] if engine.model is not None else []
    return [engine.agent_id, graph.name, graph.entry, model, tools, [list(node) for node in nodes], edges]


def _plain(value: Any, depth: int = 0) -> Any:
    """Return what can be told of a value without its place in memory."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return str(value)
    name = getattr(value, "name", None)
    kind = getattr(value, "__qualname__", None) or type(value).__qualname__
    if depth < _MOST_DEEP:
        if isinstance(value, Mapping):
            return sorted([str(key), _plain(each, depth + 1)] for key, each in value.items())
        if isinstance(value, (list, tuple)):
            return [_plain(each, depth + 1) for each in value]
        if isinstance(value, (set, frozenset)):
            return sorted(map(str, value))
        if is_dataclass(value) and not isinstance(value, type):
            held = [[each.name, _plain(getattr(value, each.name), depth + 1)] for each in fields(value)]
            return [kind, held]
    return [kind, name] if isinstance(name, str) else [kind]
