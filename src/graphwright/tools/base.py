"""The port that every tool stands behind, and what the answering of calls takes from the outside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

from graphwright.interrupts import ApprovalDecision
from graphwright.run_events import Emit
from graphwright.types import ToolCall, ToolResult, ToolSpec

if TYPE_CHECKING:
    from graphwright.tools.toolset import ToolSet

__all__ = [
    "Approval",
    "Approver",
    "CallBatch",
    "CallLog",
    "DecisionWatcher",
    "GatedCall",
    "Tool",
    "ToolGate",
    "ToolHooks",
    "ToolRun",
    "ToolSelection",
    "Verdict",
]


class Tool(ABC):
    """A tool that a model can call. Immutable once made; one object serves any number of runs."""

    spec: ToolSpec

    timeout: float | None = None
    """Seconds one call may take; `None` leaves it to the agent's `tool_timeout`."""

    blocking: bool = False
    """True when `run_blocking` is to be called in a worker thread instead of `run`."""

    reports_itself: bool = False
    """True when the tool tells LangChain callbacks of its calls by itself."""

    injected: frozenset[str] = frozenset()
    """Parameters that no model fills: the call's id is given by the tool itself, the others by a hook."""

    idempotent: bool = False
    """True when running a call again with the same idempotency key has no second effect."""

    reenterable: bool = False
    """True when a call may run again from its top after a pause inside it: it asks or runs agents, and has no effect
    of its own outside of `once`."""

    asks: bool = False
    """True when code of somebody else that a call runs may ask a person. A call that paused for an answer is made
    again from its start; one that was cut off in any other way is not."""

    risk_level: int | None = None
    """0 for reading only, 1 for an effect, 2 for a destructive one; `None` where nobody said."""

    untrusted: bool = False
    """True when what it returns was written by strangers, such as a web page."""

    other_names: tuple[str, ...] = ()
    """Names besides `name` that its author knows it by, such as that on its server; gates match them too."""

    source: str = ""
    """Where it comes from, such as the name of its server; a search for tools looks at it, too."""

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return self.spec.name

    @abstractmethod
    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as the tool takes them.

        Raises:
            ToolArgumentError: they do not fit; every problem is listed by its path.
        """

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Run one call with validated arguments and return whatever the tool returns."""
        raise NotImplementedError

    def run_blocking(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> Any:
        """Run one call of a `blocking` tool. Called in a worker thread."""
        raise NotImplementedError

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


@dataclass(slots=True)
class ToolHooks:
    """What stands around each call. Each may be `None`."""

    before: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]] | None = None
    """`(tool name, arguments) -> arguments`, or `None` for unchanged. Raising blocks the call."""

    after: Callable[[str, Any, dict[str, Any]], Awaitable[Any]] | None = None
    """`(tool name, content, arguments) -> content`, or `None` for unchanged."""


@dataclass(slots=True)
class Verdict:
    """What a gate says of one call."""

    action: Literal["allow", "deny", "ask"] = "allow"
    args: dict[str, Any] | None = None
    """Arguments in place of the call's; `None` leaves them."""
    reason: str = ""
    """Why not, in words that the model and a person may read."""
    shown: dict[str, Any] = field(default_factory=dict)
    """What a person is shown when asked."""
    standing: bool = True
    """Whether an approval of the tool for the whole run answers this question too."""
    expires_at: float | None = None
    """Seconds since the epoch after which no answer is taken."""
    notes: list[dict[str, Any]] = field(default_factory=list)
    """What is to be known of the judgement afterwards; plain data."""
    approver: Approver | None = None
    """Who decides on an "ask" while the run waits; `None` leaves it to the pause of a run that has a log."""


@dataclass(slots=True)
class GatedCall:
    """One call as a gate sees it."""

    call: ToolCall
    tool: Tool
    args: dict[str, Any]
    """The validated arguments, after hooks. Read only: give other ones in the verdict."""
    index: int
    """Place in its turn, from 0."""
    batch: int
    """How many calls the turn has."""
    conversation: Callable[[], Sequence[Any]] = tuple
    """Returns the messages of the run so far."""
    thread_id: str = ""
    """The thread of the run; empty where it has no log."""


class ToolGate(Protocol):
    """Judges every call before any of its turn runs. What it raises refuses the call."""

    async def judge(self, gated: GatedCall) -> Verdict:
        """Return what is to become of the call."""
        ...


@dataclass(slots=True)
class Approval:
    """A call that needs a person's yes."""

    call: ToolCall
    args: dict[str, Any]
    verdict: Verdict
    parameters: dict[str, Any] = field(default_factory=dict)
    """JSON schema of the arguments."""
    gated: GatedCall | None = None
    """The call as the gate sees it."""


class Approver(Protocol):
    """Decides on calls while the run waits. What it raises refuses them."""

    async def decide(self, approvals: Sequence[Approval]) -> list[ApprovalDecision | None]:
        """Return the decisions, in order; `None` leaves one to whoever answers the paused run."""
        ...


@runtime_checkable
class DecisionWatcher(Protocol):
    """A gate that is told of the decisions which a paused run was answered with."""

    async def decided(self, approval: Approval, decision: ApprovalDecision) -> None:
        """Take note of a decision. Called once for each."""
        ...


class ToolSelection(Protocol):
    """Says what a model is told of its tools, and of which ones."""

    @property
    def context_turns(self) -> int:
        """How many of the latest user turns say what a request is about."""
        ...

    @property
    def has_fallback(self) -> bool:
        """Whether the model can ask for more tools."""
        ...

    def selects_from(self, tools: ToolSet) -> bool:
        """Return whether there are so many tools that some are left out."""
        ...

    def offer(self, chosen: Iterable[Tool]) -> tuple[ToolSpec, ...]:
        """Return what a model is told of tools, in their order."""
        ...

    async def select(
        self, request: str, tools: ToolSet, *, earlier: Sequence[str] = (), keep: Collection[str] = ()
    ) -> ToolSet:
        """Return the tools to begin with."""
        ...

    async def more(self, query: str, tools: ToolSet, chosen: Collection[str]) -> ToolSet:
        """Return the best tools for `query` that are not `chosen` yet."""
        ...


class CallBatch(Protocol):
    """The calls of one turn, in the log of a run."""

    def verdict(self, call: ToolCall) -> dict[str, Any] | None:
        """Return what the gate said of the call in an earlier leg of the run."""
        ...

    def judged(self, call: ToolCall, verdict: dict[str, Any]) -> None:
        """Keep what the gate said."""
        ...

    def decide(self, approvals: Sequence[Approval]) -> list[ApprovalDecision]:
        """Return the decisions, in order, or raise the signal that pauses the run."""
        ...

    def accept(self, approval: Approval, decision: ApprovalDecision) -> bool:
        """Keep a decision that fits, and return whether it was not kept before."""
        ...

    def refuse(self, approval: Approval, problem: str) -> bool:
        """Send an answer back that does not fit; return whether it is too late for that."""
        ...

    def outcome(self, call: ToolCall) -> ToolResult | None:
        """Return how the call was answered in an earlier leg."""
        ...

    def idempotency_key(self, call: ToolCall) -> str:
        """Return the name of this very call, the same in every leg of the run."""
        ...

    def was_cut_off(self, call: ToolCall) -> bool:
        """Return whether the call began in an earlier leg and nobody knows how it ended."""
        ...

    def waited(self, call: ToolCall) -> bool:
        """Return whether the call paused for an answer in an earlier leg, and did not get one then."""
        ...

    async def begin(self, call: ToolCall) -> None:
        """Return when it is durable that the call is about to run."""
        ...

    def ended(self, result: ToolResult, index: int) -> ToolResult:
        """Keep how a call was answered, and return it as it was kept."""
        ...


class CallLog(Protocol):
    """The log of a run, for whoever answers its calls."""

    thread_id: str

    def batch(self) -> CallBatch:
        """Return the next turn of the visit that goes on."""
        ...


@dataclass(slots=True)
class ToolRun:
    """The settings under which the calls of one turn are answered."""

    parallel: int = 32
    """Most calls that run at once."""

    timeout: float | None = None
    """Seconds one call may take when its tool does not say; `None` leaves it to the run's limit."""

    node: str = ""

    path: str = ""

    run_id: str = ""

    emit: Emit | None = None

    hooks: ToolHooks | None = None

    config: dict[str, Any] | None = None
    """The caller's LangChain config, when one was given: its callbacks see every call once."""

    trace: Callable[[ToolResult], None] | None = None
    """Called with every result, in the order in which they end."""

    validate: bool = True
    """Whether arguments are checked against the tool's parameters first."""

    max_result_chars: int | None = None
    """Longest successful result text; the rest is cut and marked."""

    gate: ToolGate | None = None

    conversation: Callable[[], Sequence[Any]] = tuple
    """Returns the messages of the run so far, for the gate."""

    log: CallLog | None = None

    wrap: Callable[[ToolCall, Any], Any] | None = None
    """`(call, content) -> content`, applied to every result, errors included."""
