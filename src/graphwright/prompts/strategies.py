"""Ways to reason: each adds its instruction to the system text, and takes the answer out of the reply.

The reply itself stays in the conversation as the model wrote it; what `parse` returns is the output of the node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from graphwright.exceptions import ConfigurationError

__all__ = [
    "ChainOfThought",
    "Decompose",
    "FewShot",
    "PlanAndSolve",
    "SelfCritique",
    "Strategy",
    "StrategyChain",
]

Context = Mapping[str, Any]

CHAIN_OF_THOUGHT = (
    "Think step by step before you answer, and write the steps down. Then write the answer on a new line "
    "that starts with `{marker}`."
)
SELF_CRITIQUE = (
    "Work in three parts. Draft: answer the question. Critique: name what is wrong, missing or unproven in the draft. "
    "Then write the corrected answer on a new line that starts with `{marker}`."
)
PLAN_AND_SOLVE = (
    "First understand the problem and write a numbered plan of the steps that solve it. Then carry the plan out step "
    "by step, with every intermediate result. Then write the answer on a new line that starts with `{marker}`."
)
DECOMPOSE = (
    "Split the problem into the smaller questions that it depends on, from the simplest to the hardest. Answer them "
    "in this order, using the earlier answers. Then write the answer to the whole on a new line that starts with "
    "`{marker}`."
)
EXAMPLES = "Examples of how to answer:"


class Strategy(Protocol):
    """What a prompt node takes as `strategy`."""

    def wrap(self, text: str, context: Any = None) -> str:
        """Return the system text with the strategy's instruction."""
        ...

    def parse(self, raw: str, context: Any = None) -> Any:
        """Return the output in a reply, or `None` to leave it as it is."""
        ...


@dataclass(frozen=True, slots=True)
class _Marked:
    """A strategy whose reply ends in the answer, behind a marker at the start of a line."""

    marker: str = "Answer:"

    def __post_init__(self) -> None:
        if not self.marker.strip():
            raise ConfigurationError(f"marker is {self.marker!r}; give a text such as 'Answer:'")

    def wrap(self, text: str, context: Any = None) -> str:
        """Return the system text with the instruction at its end."""
        return _joined(text, self._instruction().format(marker=self.marker))

    def parse(self, raw: str, context: Any = None) -> str | None:
        """Return what follows the last marker, or `None` when there is none or nothing follows."""
        return _after(self.marker, raw)

    def _instruction(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ChainOfThought(_Marked):
    """Think step by step, then answer."""

    def _instruction(self) -> str:
        return CHAIN_OF_THOUGHT


@dataclass(frozen=True, slots=True)
class SelfCritique(_Marked):
    """Draft, criticise the draft, then answer."""

    marker: str = "Final answer:"

    def _instruction(self) -> str:
        return SELF_CRITIQUE


@dataclass(frozen=True, slots=True)
class PlanAndSolve(_Marked):
    """Plan the steps, carry them out, then answer."""

    def _instruction(self) -> str:
        return PLAN_AND_SOLVE


@dataclass(frozen=True, slots=True)
class Decompose(_Marked):
    """Answer smaller questions first, from the simplest to the hardest."""

    def _instruction(self) -> str:
        return DECOMPOSE


class FewShot:
    """Show examples of questions and their answers."""

    def __init__(self, examples: Iterable[tuple[str, str]], *, max_examples: int | None = None) -> None:
        """Show the first `max_examples` of `examples`, pairs of question and answer.

        Raises:
            ConfigurationError: there is no example, or one is no pair of texts.
        """
        self.examples = [_pair(example) for example in examples][:max_examples]
        if not self.examples:
            raise ConfigurationError("a FewShot strategy has no example; give at least one (question, answer)")

    def wrap(self, text: str, context: Any = None) -> str:
        """Return the system text with the examples at its end."""
        shown = [f"Question: {question}\nAnswer: {answer}" for question, answer in self.examples]
        return _joined(text, "\n\n".join([EXAMPLES, *shown]))

    def parse(self, raw: str, context: Any = None) -> str | None:
        """Return the reply without the word `Answer:` that models copy from the examples, else `None`."""
        text = raw.strip()
        found = _after("Answer:", text) if text.lower().startswith("answer:") else None
        return found


class StrategyChain:
    """Several strategies at once: their instructions in order, the last one that finds an answer decides."""

    def __init__(self, *strategies: Strategy) -> None:
        if not strategies:
            raise ConfigurationError("a StrategyChain has no strategy; give at least one")
        self.strategies = strategies

    def wrap(self, text: str, context: Any = None) -> str:
        """Return the system text with every instruction."""
        for strategy in self.strategies:
            text = strategy.wrap(text, context)
        return text

    def parse(self, raw: str, context: Any = None) -> Any:
        """Return the output that the last strategy with one finds in the reply, or `None`."""
        for strategy in reversed(self.strategies):
            found = strategy.parse(raw, context)
            if found is not None:
                return found
        return None


def _after(marker: str, raw: str) -> str | None:
    # Models like to put the marker in bold, or to make it a heading.
    pattern = rf"^[ \t]*(?:[#*_>`-]+[ \t]*)*{re.escape(marker.strip())}[ \t]*(?:[*_`]+)?"
    ends = [found.end() for found in re.finditer(pattern, raw, re.IGNORECASE | re.MULTILINE)]
    answer = raw[ends[-1] :].strip() if ends else ""
    return answer or None


def _pair(example: Any) -> tuple[str, str]:
    if isinstance(example, str) or len(example) != 2 or not all(isinstance(part, str) for part in example):
        raise ConfigurationError(f"the example {example!r} is no pair of texts; give (question, answer)")
    return example[0], example[1]


def _joined(text: str, more: str) -> str:
    return f"{text}\n\n{more}" if text else more
