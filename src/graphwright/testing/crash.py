"""Kill a run at every place where it can be killed, go on with it, and see that nothing is lost and nothing twice.

```python
scenario = AgentScenario(build, "Book a flight to Oslo.", answer=lambda item: True)
report = await explore(scenario)
assert report.problems == []
```

Where no process has to die, the power is cut inside this one: what was queued and not flushed is dropped, and an agent
that is built anew goes on from the same log. With `kill="process"` a child process is killed for real.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from graphwright.exceptions import ConfigurationError
from graphwright.interrupts import Interrupt
from graphwright.runlog import MemoryRunLog, RunLog
from graphwright.testing._crash_life import QUEUED, CutLife, Leg, Scenario
from graphwright.testing._power import CrashPoint, World

__all__ = ["AgentScenario", "CrashPoint", "CrashReport", "Leg", "Scenario", "World", "explore"]


@dataclass(slots=True)
class AgentScenario:
    """A scenario of anything that has `ainvoke` and `resume`, such as what `build_agent` makes."""

    build: Callable[[RunLog, World], Any]
    """`(log, world) -> agent`, sync or async. Called for every leg of a run, as if in a new process."""
    input: Any
    answer: Callable[[Interrupt], Any] = lambda item: True
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keywords for `ainvoke`."""

    async def run(self, log: RunLog, world: World) -> Any:
        """Build an agent and begin the run."""
        agent = await _made(self.build(log, world))
        return await agent.ainvoke(self.input, **self.options)

    async def resume(self, log: RunLog, run_id: str, answers: Any, world: World) -> Any:
        """Build an agent and go on with the run."""
        agent = await _made(self.build(log, world))
        caller = self.options.get("caller")
        return await agent.resume(run_id, answers, caller=caller)


@dataclass(slots=True)
class CrashReport:
    """What became of a scenario at each place where it was killed."""

    whole: Leg
    """The run that nobody killed."""
    steps: list[str]
    """The operations on the log of that run, in order."""
    killed: list[Leg] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What should not be; empty when all is well."""

    @property
    def points(self) -> list[CrashPoint]:
        """Where the run was killed."""
        return [leg.point for leg in self.killed if leg.point is not None]

    @property
    def transcripts(self) -> list[list[Any]]:
        """The conversations that the killed runs came to."""
        return [leg.transcript for leg in self.killed]

    @property
    def effects(self) -> list[dict[str, int]]:
        """The effects of the killed runs."""
        return [leg.effects for leg in self.killed]


async def explore(
    scenario: Scenario | str,
    *,
    kill: Literal["cut", "process"] = "cut",
    log_factory: Callable[[], RunLog] = MemoryRunLog,
    idempotent: Iterable[str] = (),
    most: int | None = None,
    deaths: int = 1,
) -> CrashReport:
    """Kill a run before and after every operation on its log, go on with it each time, and compare.

    A killed run has to come to the same conversation and usage as one that nobody killed, with each effect once; an
    effect may be missing only where the model was told that it is unknown, and may be repeated only by the tools
    named in `idempotent`. A reply that was in the log is not asked for again. `most` explores only so many points,
    spread evenly. With more `deaths` than one, whoever goes on is killed too, at places that differ from point to
    point; not with `kill="process"`.

    With `kill="process"` the scenario is named by `"path/of/file.py:name"` (or `"package.module:name"`), and every
    run is a process of its own on a SQLite file, killed by SIGKILL.

    Raises:
        ConfigurationError: the arguments do not go together.
    """
    if kill == "process":
        from graphwright.testing._crash_child import ProcessLife, load_scenario

        if not isinstance(scenario, str):
            raise ConfigurationError(f"{scenario!r} cannot be sent to another process; name it as 'file.py:name'")
        life: _Life = ProcessLife(scenario, load_scenario(scenario))
    elif isinstance(scenario, str):
        raise ConfigurationError(f"{scenario!r} names a scenario; give the scenario itself, or kill='process'")
    else:
        life = CutLife(scenario, log_factory, deaths)
    whole, steps = await life.live(None)
    report = CrashReport(whole, steps)
    if whole.error is not None:
        raise whole.error
    names = frozenset(idempotent)
    for point in _points(len(steps), kill, most):
        leg, _ = await life.live(point)
        report.killed.append(leg)
        report.problems += [f"killed at {_place(point, steps)}: {problem}" for problem in _compare(whole, leg, names)]
    return report


class _Life(Protocol):
    async def live(self, point: CrashPoint | None) -> tuple[Leg, list[str]]: ...


def _points(steps: int, kill: str, most: int | None) -> list[CrashPoint]:
    points = [
        CrashPoint(step, when, queued)
        for step in range(1, steps + 1)
        for when in ("before", "after")
        for queued in (QUEUED if kill == "cut" else QUEUED[:1])
    ]
    if most is None or most >= len(points):
        return points
    return [points[place * len(points) // most] for place in range(most)]


def _place(point: CrashPoint, steps: Sequence[str]) -> str:
    return f"step {point.step} ({point.when} {steps[point.step - 1]!r}, queued rows {point.queued})"


def _compare(whole: Leg, leg: Leg, idempotent: frozenset[str]) -> list[str]:
    """Return what is wrong with a run that was killed."""
    if leg.error is not None:
        return [f"it did not come back: {type(leg.error).__name__}: {leg.error}"]
    problems = []
    if not _alike(whole.transcript, leg.transcript, told=len(leg.unknown)):
        problems.append(f"the conversation is {leg.transcript}, and not {whole.transcript}")
    if leg.usage is not None and leg.usage != whole.usage:
        problems.append(f"the usage is {leg.usage}, and not {whole.usage}")
    for key, count in leg.effects.items():
        if key not in whole.effects:
            problems.append(f"the effect {key!r} is not one of the whole run")
        elif count > whole.effects[key] and key.partition(" ")[0] not in idempotent:
            problems.append(f"the effect {key!r} took place {count} times")
    told = set(leg.unknown)
    missing = [key for key in whole.effects if not leg.effects.get(key) and key.partition(" ")[2] not in told]
    # An effect with a key of its own does not say in which call it belongs.
    missing = missing[len(told.difference(key.partition(" ")[2] for key in whole.effects)) :]
    problems += [f"the effect {key!r} did not take place, and nobody was told" for key in missing]
    if not leg.unknown and not set(leg.asked) <= set(whole.asked):
        problems.append("a model was shown something that it is not shown in the whole run")
    if not leg.begun_again and leg.point is not None:
        again = (len(leg.asked) - leg.asked_before) - (leg.replies - leg.kept_replies)
        if again > 0:
            problems.append(f"{again} replies that the log had were asked for again")
    return problems


def _alike(whole: Sequence[Any], other: Sequence[Any], *, told: int) -> bool:
    """Return whether two conversations are the same but for the results of `told` calls that are unknown."""
    if len(whole) != len(other):
        return False
    different = [pair for pair in zip(whole, other, strict=True) if pair[0] != pair[1]]
    if any(a[0] != "tool" or (a[0], *a[2:]) != (b[0], *b[2:]) for a, b in different):
        return False
    return len(different) <= told


async def _made(agent: Any) -> Any:
    return await agent if inspect.isawaitable(agent) else agent
