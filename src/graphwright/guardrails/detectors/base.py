"""What a detector is, and a rule of one's own."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import ConfigurationError
from graphwright.guardrails.base import SEAMS, Seam
from graphwright.guardrails.report import GuardrailAction
from graphwright.guardrails.views import plain_views

__all__ = ["Detector", "Match", "Rule", "chosen_patterns", "distinct", "in_thread_if_long"]

_LONG = 10_000


@dataclass(frozen=True, slots=True)
class Match:
    """A place in the author's text."""

    category: str
    start: int = -1
    end: int = -1
    score: float = 1.0


class Detector(ABC):
    """Finds one kind of thing in a text."""

    name: str = ""
    action: GuardrailAction = GuardrailAction.BLOCK
    seams: frozenset[Seam] = frozenset(SEAMS)

    @abstractmethod
    async def find(self, text: str, before: str = "") -> list[Match]:
        """Return what is in `text`; `before` is the end of what came just before it."""

    async def warmup(self) -> None:  # noqa: B027  # most have nothing to load
        """Load what the detector needs, so that the first text does not wait for it."""

    @property
    def is_ready(self) -> bool:
        """Whether there is anything to detect with."""
        return True


class Rule(Detector):
    """A regular expression or a function of yours.

    The expression is searched, whatever the case of letters, in the text and in its decoded forms. The function takes
    the text and says whether it objects; it may be a coroutine function.
    """

    def __init__(
        self,
        name: str,
        pattern: str | re.Pattern[str] | Callable[[str], Any],
        action: GuardrailAction | str = GuardrailAction.BLOCK,
        *,
        seams: Iterable[Seam] = SEAMS,
    ) -> None:
        self.name = name
        self.action = GuardrailAction(action)
        self.seams = frozenset(seams)
        self._ask = pattern if callable(pattern) else None
        if self._ask is not None and self.action is GuardrailAction.REDACT:
            raise ConfigurationError(f"rule {name!r} is a function, which names no place to redact; block or warn")
        try:
            self._pattern = None if callable(pattern) else re.compile(pattern, re.IGNORECASE)
        except re.error as error:
            raise ConfigurationError(f"rule {name!r}: {pattern!r} is no regular expression: {error}") from error
        except ValueError:  # compiled already, with flags of its own
            self._pattern = pattern  # type: ignore[assignment]

    async def find(self, text: str, before: str = "") -> list[Match]:
        """Return where the rule objects."""
        if self._ask is not None:
            answer = self._ask(text)
            if inspect.isawaitable(answer):
                answer = await answer
            if not isinstance(answer, bool):
                raise TypeError(
                    f"rule {self.name!r} answered with {type(answer).__name__}; let it return True or False"
                )
            return [Match(self.name)] if answer else []
        assert self._pattern is not None
        return [
            Match(self.name, *view.place_of(*match.span()))
            for view in plain_views(text)
            for match in self._pattern.finditer(view.text)
            if match.group()
        ]


def chosen_patterns(
    known: Mapping[str, Any], chosen: Iterable[str] | Mapping[str, str] | None, left_out: Iterable[str], *, what: str
) -> dict[str, Any]:
    """Return the patterns to use: all, those that are named, or all and those that are given with a name.

    Raises:
        ConfigurationError: a name is unknown, or a pattern is no regular expression.
    """
    found = dict(known)
    if isinstance(chosen, Mapping):
        for name, pattern in chosen.items():
            try:
                found[name] = re.compile(pattern)
            except (re.error, TypeError) as error:
                raise ConfigurationError(f"{what}[{name!r}] is {pattern!r}, no regular expression: {error}") from error
    elif chosen is not None:
        names = [chosen] if isinstance(chosen, str) else list(chosen)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ConfigurationError(f"{what} has {unknown[0]!r}; the patterns are {', '.join(sorted(known))}")
        found = {name: known[name] for name in names}
    return {name: pattern for name, pattern in found.items() if name not in set(left_out)}


def distinct(matches: Iterable[Match]) -> list[Match]:
    """Return matches in order of place, each place and kind once."""
    best: dict[tuple[str, int, int], Match] = {}
    for match in matches:
        best.setdefault((match.category, match.start, match.end), match)
    return sorted(best.values(), key=lambda match: (match.start, match.end))


async def in_thread_if_long(find: Callable[[str], list[Match]], text: str) -> list[Match]:
    """Return what `find` gives; a long text is searched beside the event loop."""
    return await run_in_thread(find, text) if len(text) > _LONG else find(text)
