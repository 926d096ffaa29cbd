"""What the figures have to be, and whether they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

__all__ = ["TARGETS", "Figures", "Target", "Verdict", "judge", "workloads_by_column"]

Figures = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Column -> `"W4.cpu_us_round_50"` -> number of the repeat -> value; a repeat that failed is not there."""

Outcome = Literal["met", "MISSED", "-", "no figures"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One figure of one column, and the most that it may be."""

    name: str
    column: str
    figure: str
    unit: str = "us"

    against: str | None = None
    """The column whose figure is 1. `None`: the figure itself is limited."""

    over: str | None = None
    """Another figure of the same column that is 1."""

    limit: float | None = None
    """`None` shows the figure and judges nothing."""

    limit_on_3_11: float | None = None
    """The limit on Python 3.11, where it is another one."""

    strict: bool = False
    """The limit itself is too much."""

    def limit_for(self, version: str) -> float | None:
        """Return the limit on a Python version, such as `3.12`."""
        return self.limit_on_3_11 if version == "3.11" and self.limit_on_3_11 is not None else self.limit


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What came of a target."""

    target: Target
    limit: float | None
    outcome: Outcome
    figure: float = 0.0
    reference: float | None = None

    ratios: tuple[float, ...] = ()
    """What is judged is the median of these: one a repeat, both figures of the same repeat."""

    @property
    def judged(self) -> float:
        """The median that the limit is held against."""
        return median(self.ratios)


def judge(target: Target, figures: Figures, version: str) -> Verdict:
    """Hold a target against the figures."""
    limit = target.limit_for(version)
    own = figures.get(target.column, {})
    values = own.get(target.figure, {})
    references: Mapping[int, float] | None = None
    if target.against is not None:
        references = figures.get(target.against, {}).get(target.figure, {})
    elif target.over is not None:
        references = own.get(target.over, {})
    repeats = [repeat for repeat in values if references is None or repeat in references]
    if not repeats:
        return Verdict(target=target, limit=limit, outcome="no figures")
    ratios = tuple(values[repeat] / (references[repeat] if references is not None else 1) for repeat in repeats)
    shown = median(ratios)
    met = limit is not None and (shown < limit if target.strict else shown <= limit)
    return Verdict(
        target=target,
        limit=limit,
        outcome="-" if limit is None else "met" if met else "MISSED",
        figure=median(values[repeat] for repeat in repeats),
        reference=None if references is None else median(references[repeat] for repeat in repeats),
        ratios=ratios,
    )


def workloads_by_column(only: Sequence[str]) -> dict[str, set[str]]:
    """Return the workloads that each column has to do for the targets of some workloads."""
    needed: dict[str, set[str]] = {}
    for target in TARGETS:
        workload = target.figure.partition(".")[0]
        for column in filter(None, (target.column, target.against)):
            if workload in only:
                needed.setdefault(column, set()).add(workload)
    return needed


_NATIVE, _LC = "graphwright_native", "graphwright_lc"
_BY_HAND, _BASE, _DICT = "lc_by_hand", "baseline_lc", "baseline_dict"
_BARE, _BUILT, _BUILT_LC, _THREE = (
    "import graphwright",
    "agent built",
    "agent built, LangChain",
    "three LangChain names",
)

TARGETS = (
    Target(name="W1 bare import", column=_BARE, figure="W1.cpu_ms", unit="ms", limit=60),
    Target(name="W1 third-party packages in it", column=_BARE, figure="W1.third_party", unit="", limit=0),
    Target(name="W1 agent built", column=_BUILT, against=_THREE, figure="W1.cpu_ms", unit="ms", limit=1.15),
    Target(
        name="W1 agent built, LangChain objects",
        column=_BUILT_LC,
        against=_THREE,
        figure="W1.cpu_ms",
        unit="ms",
        limit=1.15,
    ),
    Target(name="W3 run without tools", column=_NATIVE, against=_BASE, figure="W3.cpu_us", limit=1.5),
    Target(name="W3 LangChain objects", column=_LC, against=_BY_HAND, figure="W3.cpu_us", limit=1.2),
    Target(
        name="W4 50 rounds, a round",
        column=_NATIVE,
        against=_BASE,
        figure="W4.cpu_us_round_50",
        limit=1.5,
        limit_on_3_11=2.3,
    ),
    Target(
        name="W4 200 rounds, a round",
        column=_NATIVE,
        against=_BASE,
        figure="W4.cpu_us_round_200",
        limit=1.5,
        limit_on_3_11=2.3,
    ),
    Target(name="W4 50 rounds, sync tool", column=_NATIVE, against=_BASE, figure="W4.cpu_us_round_50_sync_tool"),
    Target(name="W4 LangChain objects, 50", column=_LC, against=_BY_HAND, figure="W4.cpu_us_round_50", limit=1.2),
    Target(name="W4 LangChain objects, 200", column=_LC, against=_BY_HAND, figure="W4.cpu_us_round_200", limit=1.2),
    Target(
        name="W4 flat: round 200 / round 5",
        column=_NATIVE,
        figure="W4.growth_200_over_5",
        unit="x",
        limit=1.15,
    ),
    Target(
        name="W4 flat: a round of 200 / of 50",
        column=_NATIVE,
        figure="W4.cpu_us_round_200",
        over="W4.cpu_us_round_50",
        limit=1.15,
    ),
    Target(name="W5 32 async tools / 20 ms", column=_NATIVE, figure="W5.over_ideal_async", unit="x", limit=1.15),
    Target(name="W5 32 sync tools / 20 ms", column=_NATIVE, figure="W5.over_ideal_sync", unit="x", limit=1.15),
    Target(
        name="W5 loop lag, async tools", column=_NATIVE, figure="W5.loop_lag_ms_async", unit="ms", limit=5, strict=True
    ),
    Target(
        name="W5 loop lag, sync tools", column=_NATIVE, figure="W5.loop_lag_ms_sync", unit="ms", limit=5, strict=True
    ),
    Target(name="W5 async tools by hand / 20 ms", column=_BASE, figure="W5.over_ideal_async", unit="x"),
    Target(name="W5 sync tools by hand / 20 ms", column=_BASE, figure="W5.over_ideal_sync", unit="x"),
    Target(name="W5 LangChain objects, async", column=_LC, against=_BY_HAND, figure="W5.over_ideal_async", unit="x"),
    Target(name="W5 LangChain objects, sync", column=_LC, against=_BY_HAND, figure="W5.over_ideal_sync", unit="x"),
    Target(name="W6 1000 runs, CPU", column=_NATIVE, against=_BASE, figure="W6.cpu_us_per_round", limit=1.6),
    Target(name="W6 1000 runs, memory", column=_NATIVE, against=_BASE, figure="W6.rss_grown_mb", unit="MB", limit=1.6),
    Target(name="W7 a streamed chunk", column=_NATIVE, against=_BASE, figure="W7.us_per_chunk", limit=2.0),
    Target(name="W7 LangChain objects", column=_LC, against=_BY_HAND, figure="W7.us_per_chunk"),
    Target(name="W3 loop over plain dicts", column=_DICT, against=_BASE, figure="W3.cpu_us"),
    Target(name="W4 loop over plain dicts, 50", column=_DICT, against=_BASE, figure="W4.cpu_us_round_50"),
)
