"""The lives of a run that is killed: until its death, after it, and what it came to in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from graphwright.interrupts import Interrupt
from graphwright.messages import text_of
from graphwright.runlog import RunLog
from graphwright.runlog.base import Row, RunInfo
from graphwright.runtime import NOTHING
from graphwright.runtime.history import conversation_of
from graphwright.testing._power import CrashPoint, Power, PowerCut, ShakyLog, World, numbers_of, transcript_of

__all__ = ["QUEUED", "CutLife", "Leg", "Scenario", "come_back", "finish", "look"]

_MOST_LEGS = 50

QUEUED: tuple[Literal["kept", "lost", "half"], ...] = ("kept", "lost", "half")


class Scenario(Protocol):
    """A run that can be begun and gone on with, always by agents that are made anew."""

    async def run(self, log: RunLog, world: World) -> Any:
        """Begin the run and return its result: `status`, `run_id`, `pending` and `messages` are looked at."""
        ...

    async def resume(self, log: RunLog, run_id: str, answers: Any, world: World) -> Any:
        """Go on with the run, with `{interrupt id: answer}` or `NOTHING`, and return its result."""
        ...

    def answer(self, item: Interrupt) -> Any:
        """Return the answer to something that the run waits for."""
        ...


@dataclass(slots=True)
class Leg:
    """What a run came to, whole or killed once and gone on with."""

    point: CrashPoint | None
    transcript: list[Any] = field(default_factory=list)
    """`(type, text, [(tool, arguments, call)], call)` for every message; calls are numbered in order."""
    effects: dict[str, int] = field(default_factory=dict)
    """How often each effect took place, by its key without the run's id."""
    unknown: list[str] = field(default_factory=list)
    """Keys of the calls that were cut off, and that the model was told of."""
    usage: Any = None
    asked: list[str] = field(default_factory=list)
    """What the models were shown, in order: a digest of each request."""
    kept_replies: int = 0
    """How many replies the log had when the run was killed."""
    asked_before: int = 0
    """How often a model was asked before the run was killed."""
    replies: int = 0
    """How many replies the log has at the end."""
    begun_again: bool = False
    """Whether the log had nothing of the run, so that it was begun again."""
    error: BaseException | None = None


class CutLife:
    """Runs in this process whose power is cut."""

    def __init__(self, scenario: Scenario, log_factory: Callable[[], RunLog], deaths: int) -> None:
        self._scenario = scenario
        self._log_factory = log_factory
        self._deaths = deaths

    async def live(self, point: CrashPoint | None) -> tuple[Leg, list[str]]:
        log = self._log_factory()
        leg = Leg(point)
        world = World()
        names: list[str] = []
        try:
            for death, due in enumerate(self._points(point)):
                power = world.power = Power(due)
                names = power.names
                shaky = ShakyLog(log, power)
                try:
                    if death == 0:
                        result = await finish(self._scenario, shaky, world, await self._scenario.run(shaky, world))
                    else:
                        result = await come_back(self._scenario, shaky, world, leg)
                    break
                except PowerCut:
                    await shaky.let_go()
            await look(leg, log, world, result)
        except Exception as error:  # a scenario that fails after a crash is what is looked for
            leg.error = error
        finally:
            await log.aclose()
        return leg, names

    def _points(self, point: CrashPoint | None) -> list[CrashPoint | None]:
        """Return where each life ends; the last one does not."""
        if point is None:
            return [None]
        further = [
            CrashPoint(1 + point.step * (5 + death) % 17, point.when, QUEUED[(point.step + death) % len(QUEUED)])
            for death in range(1, self._deaths)
        ]
        return [point, *further, None]


async def finish(scenario: Scenario, log: RunLog, world: World, result: Any) -> Any:
    """Answer what a run waits for until it has ended, and return its result."""
    for _ in range(_MOST_LEGS):
        if result.status != "paused":
            return result
        answers = {item.id: scenario.answer(item) for item in result.pending}
        result = await scenario.resume(log, result.run_id, answers, world)
    raise AssertionError(f"the run {result.run_id} was still paused after {_MOST_LEGS} answers")


async def come_back(scenario: Scenario, log: RunLog, world: World, leg: Leg) -> Any:
    """Go on with the run that was killed, or begin it where the log has nothing of it; return the result."""
    info, rows = await _last_run(log)
    leg.asked_before = len(world.records("asked"))
    if info is None or not any(row.kind == "input" for row in rows):
        leg.begun_again = True
        return await finish(scenario, log, world, await scenario.run(log, world))
    leg.kept_replies = sum(row.kind == "reply" for row in rows)
    if any(row.kind == "end" for row in rows):
        return None
    return await finish(scenario, log, world, await scenario.resume(log, info.run_id, NOTHING, world))


async def look(leg: Leg, log: RunLog, world: World, result: Any) -> None:
    """Write down what a run came to."""
    info, rows = await _last_run(log)
    assert info is not None
    conversation = conversation_of(rows)
    written = transcript_of(conversation)
    leg.transcript = transcript_of(result.messages) if result is not None else written
    if written != leg.transcript:
        raise AssertionError(f"the log has the conversation {written}, and the result {leg.transcript}")
    leg.usage = result.usage.as_dict() if result is not None else None
    numbers = numbers_of(conversation)
    leg.effects = dict(Counter(_named(record, info, numbers) for record in world.records("effect")))
    leg.asked = [record["key"] for record in world.records("asked")]
    leg.replies = sum(row.kind == "reply" for row in rows)
    unknown = [row for row in rows if row.kind == "outcome" and _is_unknown(row)]
    leg.unknown = [_numbered(f"{row.frame}:{row.key}", numbers) for row in unknown]


def _is_unknown(row: Row) -> bool:
    if row.data.get("also", {}).get("verdict") == "unknown":
        return True
    return not row.data.get("ok", True) and "unknown" in text_of(row.data["message"])


async def _last_run(log: RunLog) -> tuple[RunInfo | None, Sequence[Row]]:
    found = await log.runs(limit=1)
    return (found[0], await log.rows(found[0].run_id)) if found else (None, [])


def _named(record: dict[str, Any], info: RunInfo, numbers: Mapping[str, int]) -> str:
    return f"{record['name']} " + _numbered(str(record["key"]).replace(f"{info.run_id}:", "", 1), numbers)


def _numbered(key: str, numbers: Mapping[str, int]) -> str:
    """Return the key of a call with its number in the conversation in place of its id, which may be a random one."""
    place, _, call_id = key.rpartition(":")
    return f"{place}:{numbers[call_id]}" if call_id in numbers else key
