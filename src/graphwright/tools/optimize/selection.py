"""Choose the tools that a request is about, and more of them when the model asks."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from graphwright._internal.threads import run_in_thread
from graphwright.tools.base import Tool
from graphwright.tools.optimize.config import ToolOptimizationConfig
from graphwright.tools.optimize.search import MeaningIndex, WordIndex, fused
from graphwright.tools.optimize.trimming import trimmed
from graphwright.tools.toolset import ToolSet
from graphwright.types import ToolSpec

__all__ = ["ToolSelector"]

logger = logging.getLogger(__name__)

_EARLIER = 0.4
"""What a word of an earlier turn counts beside one of the latest."""
_MOST_INDEXES = 32
_MANY = 50
_MOST_TRIMMED = 4096


class ToolSelector:
    """What a model is told of its tools. One object serves any number of runs; it keeps only what tools are like."""

    def __init__(self, config: ToolOptimizationConfig) -> None:
        self.config = config
        self._words: dict[tuple[str, ...], tuple[tuple[ToolSpec, ...], WordIndex]] = {}
        self._meanings = MeaningIndex(config.embedding_model) if config.embedding_model is not None else None
        self._trimmed: dict[str, tuple[ToolSpec, ToolSpec]] = {}

    @property
    def context_turns(self) -> int:
        """How many of the latest user turns say what a request is about."""
        return self.config.semantic_context_turns or 1

    @property
    def has_fallback(self) -> bool:
        """Whether the model can ask for more tools."""
        return bool(self.config.always_include_fallback)

    def selects_from(self, tools: ToolSet) -> bool:
        """Return whether there are so many tools that some are left out."""
        kept = sum(name in self._preserved for name in tools.names)
        return bool(self.config.semantic_selection) and len(tools) > self._count + kept

    def offer(self, chosen: Iterable[Tool]) -> tuple[ToolSpec, ...]:
        """Return what a model is told of tools, in their order."""
        return tuple(self._spec_of(tool) for tool in chosen)

    async def select(
        self, request: str, tools: ToolSet, *, earlier: Sequence[str] = (), keep: Collection[str] = ()
    ) -> ToolSet:
        """Return the tools to begin with: those that are always there, and those that the request is about.

        `earlier` are texts that help to understand it, `keep` are names to have in any case. The order is that of
        `tools`, so that the same tools always read the same.
        """
        always = self._preserved | set(keep)
        best = [name for name in await self.ranked(request, tools, earlier=earlier) if name not in always]
        if not self.has_fallback and len(best) < self._count:
            # A model that cannot ask for more is not left without tools.
            best += [name for name in tools.names if name not in always and name not in best]
        wanted = always | set(best[: self._count])
        front = [tool for tool in tools if tool.name in self._preserved]
        return ToolSet([*front, *(tool for tool in tools if tool.name in wanted and tool.name not in self._preserved)])

    async def more(self, query: str, tools: ToolSet, chosen: Collection[str]) -> ToolSet:
        """Return the best tools for `query` that are not `chosen` yet."""
        found = [name for name in await self.ranked(query, tools) if name not in chosen]
        return ToolSet(tool for name in found[: self._count] if (tool := tools.get(name)) is not None)

    async def ranked(self, request: str, tools: ToolSet, *, earlier: Sequence[str] = ()) -> list[str]:
        """Return the names of the tools that fit, the best first.

        Without an embedder, tools that share no word with the request are left out.
        """
        index = await self._word_index(tools)
        scores = _weighted(index, request, earlier)
        if self._meanings is not None:
            text = "\n".join([*earlier, request]) if earlier and not scores else request
            try:
                scores = fused(await self._meanings.scores(text, tools), scores)
            except Exception:  # an embedder is foreign code, and the search by words needs none
                logger.exception("the embedder failed; tools are searched by words")
        return sorted(scores, key=lambda name: (-scores[name], name))

    @property
    def _count(self) -> int:
        return self.config.semantic_top_k or 1

    @property
    def _preserved(self) -> frozenset[str]:
        return frozenset(self.config.preserve_tools or ())

    async def _word_index(self, tools: ToolSet) -> WordIndex:
        found = self._words.get(tools.names)
        if found is None or any(one is not other for one, other in zip(found[0], tools.specs, strict=True)):
            # Hundreds of tools take longer to read than the event loop should stand still.
            index = WordIndex(tools) if len(tools) < _MANY else await run_in_thread(WordIndex, tools)
            if len(self._words) >= _MOST_INDEXES:
                self._words.clear()
            found = self._words[tools.names] = (tools.specs, index)
        return found[1]

    def _spec_of(self, tool: Tool) -> ToolSpec:
        if tool.name in self._preserved:
            return tool.spec
        found = self._trimmed.get(tool.name)
        if found is None or found[0] is not tool.spec:
            if len(self._trimmed) >= _MOST_TRIMMED:
                self._trimmed.clear()
            found = self._trimmed[tool.name] = (tool.spec, trimmed(tool.spec, self.config))
        return found[1]


def _weighted(index: WordIndex, request: str, earlier: Sequence[str]) -> Mapping[str, float]:
    scores = index.scores(request)
    for text in earlier:
        for name, score in index.scores(text).items():
            scores[name] = scores.get(name, 0.0) + _EARLIER * score
    return scores
