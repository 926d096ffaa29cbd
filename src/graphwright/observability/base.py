"""The words of watching runs: who watches, what a watcher is told, and what an entry of a record holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from graphwright.caller import IsolationKey

if TYPE_CHECKING:
    from graphwright.run_events import RunEvent

__all__ = [
    "ObserveLevel",
    "RunInfo",
    "RunListener",
    "RunOutcome",
    "RunWatcher",
    "TimelineEntry",
    "Transporter",
    "TransporterType",
    "agent_of",
]


class ObserveLevel(str, Enum):
    """How much is recorded."""

    OFF = "off"
    BASIC = "basic"
    """Runs, model calls, tool calls and errors, without anything that was said."""
    STANDARD = "standard"
    """With it the arguments and results of tools, guards, and pauses."""
    FULL = "full"
    """With it every prompt and reply, the visits of nodes, and what changed on the way."""


class TransporterType(str, Enum):
    """Where what is recorded goes."""

    HTML = "html"
    JSON = "json"
    JSON_LINES = "jsonl"
    STRUCTURED_LOG = "log"
    CONSOLE = "console"
    PROMETHEUS = "prometheus"
    OTLP = "otlp"
    WEBHOOK = "webhook"
    CALLBACK = "callback"


@dataclass(slots=True, kw_only=True)
class RunInfo:
    """A run that is about to begin."""

    run_id: str
    """Empty where it is not known yet: of a run that goes on and was named by its thread."""
    agent_id: str
    caller_key: IsolationKey
    session_id: str = ""
    model_name: str = ""
    is_resumed: bool = False
    is_part: bool = False
    """Whether it is a part of another run, which counts its tokens too."""
    asks_cache: bool = False


@dataclass(slots=True, kw_only=True)
class RunOutcome:
    """How a run ended."""

    status: str
    """`completed`, `paused`, `failed`, `timeout` or `aborted`."""
    run_id: str = ""
    error: BaseException | None = None
    usage: Any = None
    """The `Usage` of the run, its parts included; `None` where the run has no result."""
    cache_hit: bool = False
    text: str = ""
    """The answer."""


class RunListener(Protocol):
    """Follows one run. Its methods are called in the run's own task and must not wait for anything."""

    def take(self, event: RunEvent) -> None:
        """Note one event; of the text of a reply, only the whole is told of."""

    def end(self, outcome: RunOutcome) -> None:
        """Note the end; called once, whatever happened."""


class RunWatcher(Protocol):
    """Watches the runs of an agent."""

    @property
    def subject(self) -> object:
        """What is told in the end. Of two watchers with one subject, the outer one tells of the runs inside its own."""

    def begin(self, run: RunInfo) -> RunListener | None:
        """Return what follows a run that is about to begin; `None` leaves it alone."""


@dataclass(slots=True, kw_only=True)
class TimelineEntry:
    """One thing that was recorded."""

    event_type: str
    """`run.start`, `run.end`, `model.call`, `tool.call`, ... or a word of your own."""
    at: float
    """Seconds since the epoch at which it began."""
    agent_id: str = ""
    run_id: str = ""
    caller_key: str = ""
    """The isolation key of the caller."""
    session_id: str = ""
    path: str = ""
    node: str = ""
    duration_ms: float | None = None
    error: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    seq: int = 0
    """Place in the record, from 1."""

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        return asdict(self)


class Transporter:
    """Takes what is recorded somewhere. Override what is needed; an error in one stops neither the others nor a run."""

    name = "transporter"

    def export(self, entry: TimelineEntry) -> None:
        """Take one entry; called in the run's own task, so it must not wait for anything."""

    async def flush(self) -> None:
        """Bring everything taken so far to its place."""

    async def close(self) -> None:
        """Flush, and release what is held."""
        await self.flush()


def agent_of(event: RunEvent, own: str) -> str:
    """Return which agent an event is of: the watched one, or the peer that its path names."""
    if "@" not in event.path:
        return own
    return event.agent_id or event.path.rsplit("@", 1)[1].split("/", 1)[0]
