"""Find the tools that a request is about: by words (BM25), and by meaning where an embedder is given."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphwright.models.base import Embedder
from graphwright.tools.base import Tool
from graphwright.tools.optimize.words import meant_by, related, words_of

__all__ = ["MeaningIndex", "WordIndex", "fused", "text_for_embedding"]

_K1 = 2.0
_B = 0.3
_RELATED = 0.55
"""What a word counts that means about the same as one of the request."""

_PREFIX = 4
_SHARED = 0.6
"""How much of the longer of two words their common beginning is, when they count as related."""
_BEGINNING = 0.7
"""What such a word counts."""
_SOURCE = 0.3
"""What it counts that the best tools of the same source fit, too."""
_BEST = 3

_NAME, _OPENING, _REST, _PARAMETERS, _DETAILS = 2.0, 1.5, 0.3, 0.5, 0.3
_BATCH = 64
_EMBEDDED_CHARS = 400
_RANK_OFFSET = 3


class WordIndex:
    """BM25 over the names, descriptions and parameters of tools. The name counts most."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        tools = list(tools)
        self._postings: dict[str, list[tuple[str, float]]] = {}
        counted = {tool.name: _weighted_words(tool) for tool in tools}
        lengths = {name: sum(words.values()) for name, words in counted.items()}
        average = sum(lengths.values()) / len(lengths) if lengths else 1.0
        self._size = len(counted)
        self._sources: dict[str, list[str]] = {}
        for tool in tools:
            if tool.source:
                self._sources.setdefault(tool.source, []).append(tool.name)
        for name, words in counted.items():
            norm = _K1 * (1 - _B + _B * lengths[name] / average)
            for word, weight in words.items():
                self._postings.setdefault(word, []).append((name, weight * (_K1 + 1) / (weight + norm)))
        self._beginning: dict[str, list[str]] = {}
        for word in self._postings:
            self._beginning.setdefault(word[:_PREFIX], []).append(word)

    def scores(self, text: str) -> dict[str, float]:
        """Return how well each tool fits, by name; those that share no word with the text are left out."""
        found: dict[str, float] = {}
        for word in dict.fromkeys(words_of(meant_by(text))):
            best: dict[str, float] = {}
            for other, share in self._meant_by(word).items():
                for name, score in self._scored(other):
                    best[name] = max(best.get(name, 0.0), share * score)
            for name, score in best.items():
                found[name] = found.get(name, 0.0) + score
        self._add_sources(found)
        return found

    def _add_sources(self, found: dict[str, float]) -> None:
        """Let the tools of a source gain from each other: who speaks of a cell and a column means a spreadsheet."""
        gains = {}
        for source, names in self._sources.items():
            best = sorted((found.get(name, 0.0) for name in names), reverse=True)[:_BEST]
            gains[source] = _SOURCE * sum(best) / _BEST
        for source, names in self._sources.items():
            if gains[source] > 0:
                for name in names:
                    found[name] = found.get(name, 0.0) + gains[source]

    def _meant_by(self, word: str) -> dict[str, float]:
        """Return the words that a word of a request stands for, and what each of them counts."""
        found = dict.fromkeys(related(word), _RELATED)
        if len(word) >= _PREFIX:
            for other in self._beginning.get(word[:_PREFIX], ()):
                if _shared_share(word, other) >= _SHARED:
                    found[other] = _BEGINNING
        found[word] = 1.0
        return found

    def _scored(self, word: str) -> list[tuple[str, float]]:
        postings = self._postings.get(word, [])
        rarity = math.log(1 + (self._size - len(postings) + 0.5) / (len(postings) + 0.5))
        return [(name, rarity * score) for name, score in postings]


class MeaningIndex:
    """Cosine similarity of embedded tools. A tool is embedded once, when it is first seen."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, list[float]] = {}

    async def scores(self, text: str, tools: Iterable[Tool]) -> dict[str, float]:
        """Return how close each tool is to the text, by name, from -1 to 1."""
        texts = {tool.name: text_for_embedding(tool) for tool in tools}
        missing = list(dict.fromkeys(each for each in texts.values() if each not in self._vectors))
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            self._vectors.update(zip(batch, await self._embedded(batch), strict=True))
        (wanted,) = await self._embedded([text])
        return {name: _dot(wanted, self._vectors[each]) for name, each in texts.items()}

    async def _embedded(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = await self._embedder.embed(texts)
        if len(vectors) != len(texts):
            raise ValueError(f"the embedder gave {len(vectors)} vectors for {len(texts)} texts")
        return [_unit(vector) for vector in vectors]


def _shared_share(one: str, other: str) -> float:
    longest = max(len(one), len(other))
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return same / longest


def fused(*rankings: Mapping[str, float]) -> dict[str, float]:
    """Return one score a name from several rankings, by the places in them (reciprocal rank fusion)."""
    found: dict[str, float] = {}
    for scores in rankings:
        for place, name in enumerate(sorted(scores, key=lambda name: (-scores[name], name))):
            found[name] = found.get(name, 0.0) + 1 / (_RANK_OFFSET + place)
    return found


def text_for_embedding(tool: Tool) -> str:
    """Return what stands for a tool where texts are compared by meaning."""
    name = " ".join(words for words in (tool.source, tool.name.replace("_", " ").replace("-", " ")) if words)
    return f"{name}: {' '.join(tool.spec.description.split())[:_EMBEDDED_CHARS]}"


def _weighted_words(tool: Tool) -> Counter[str]:
    words: Counter[str] = Counter()

    def add(text: str, weight: float) -> None:
        for word in words_of(text):
            words[word] += weight  # type: ignore[assignment]

    opening, _, rest = tool.spec.description.partition("\n\n")
    sentence, dot, more = opening.partition(". ")
    add(tool.name, _NAME)
    add(tool.source, _OPENING)
    add(sentence, _OPENING)
    add(f"{more if dot else ''} {rest}", _REST)
    for name, entry in (tool.spec.parameters.get("properties") or {}).items():
        add(name, _PARAMETERS)
        add(_words_in(entry), _DETAILS)
    # A word that a long text repeats says little more than one that it has once.
    return Counter({word: min(weight, 6.0) for word, weight in words.items()})


def _words_in(schema: Any) -> str:
    """Return the description of a parameter and the texts that it may be."""
    if not isinstance(schema, Mapping):
        return ""
    choices = schema.get("enum")
    texts = [choice for choice in choices if isinstance(choice, str)] if isinstance(choices, list) else []
    return " ".join([str(schema.get("description") or ""), *texts])


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
