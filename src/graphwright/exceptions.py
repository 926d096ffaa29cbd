"""Every error a caller can meet, in one tree.

GraphwrightError
├── ConfigurationError (ValueError)        your call is wrong
│   ├── UnknownPatternError
│   ├── UnknownModelError
│   ├── GraphInvalidError                  .problems
│   ├── GraphSerializationError
│   ├── UnstorableError                    a value cannot be written to a log or store
│   └── MissingExtraError (ImportError)    .extra
├── GraphExecutionError (RuntimeError)     the run has no answer: .graph_name .node_name .error .report
│   ├── GraphIterationLimitError           .limit .pending_tools
│   ├── GraphStoppedError                  .reason .stopped_by .pending_tools
│   │   └── GraphBudgetExceededError
│   └── CodeActionBudgetError              .max_tool_calls .attempts
├── GuardrailViolation                     .report .direction
├── RunTimeoutError (TimeoutError)         .seconds
├── RunAbortedError                        .run_id
├── DelegationError (RuntimeError)
├── ModelError                             .retryable .status .retry_after
│   ├── EmptyReplyError
│   ├── ModelRefusalError                  .reason .refusal
│   └── OutputSchemaError                  .raw
├── InterruptError
├── RunPausedError                         .pending .run_id .thread_id
├── ToolError                              raised by a tool on purpose
│   └── ToolArgumentError                  .tool_name .problems
├── MCPError                               .server .retryable .sent
│   ├── MCPConnectionRejectedError
│   └── MCPCredentialError
├── SessionError
│   ├── SessionAccessDenied (PermissionError)
│   ├── ConversationConflict               .session_id .expected .actual
│   ├── StoreUnavailable (RuntimeError)
│   └── ThreadBusy
├── FeatureOffError (RuntimeError)
├── NodeNotFoundError (KeyError)
├── SandboxUnavailableError
└── IdentityError
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwright.engine.state import ExecutionReport

__all__ = [
    "CodeActionBudgetError",
    "ConfigurationError",
    "ConversationConflict",
    "DelegationError",
    "EmptyReplyError",
    "FeatureOffError",
    "GraphBudgetExceededError",
    "GraphExecutionError",
    "GraphInvalidError",
    "GraphIterationLimitError",
    "GraphSerializationError",
    "GraphStoppedError",
    "GraphwrightError",
    "GuardrailViolation",
    "IdentityError",
    "InterruptError",
    "MCPConnectionRejectedError",
    "MCPCredentialError",
    "MCPError",
    "MissingExtraError",
    "ModelError",
    "ModelRefusalError",
    "NodeNotFoundError",
    "OutputSchemaError",
    "RunAbortedError",
    "RunPausedError",
    "RunTimeoutError",
    "SandboxUnavailableError",
    "SessionAccessDenied",
    "SessionError",
    "StoreUnavailable",
    "ThreadBusy",
    "ToolArgumentError",
    "ToolError",
    "UnknownModelError",
    "UnknownPatternError",
    "UnstorableError",
]


class GraphwrightError(Exception):
    """The root of every error this package raises on purpose."""


class ConfigurationError(GraphwrightError, ValueError):
    """A value given to the package cannot work; the message names it and the remedy."""


class UnknownPatternError(ConfigurationError):
    """No agent pattern has the given name."""


class UnknownModelError(ConfigurationError):
    """A model string names no known provider, or has the wrong form."""


class GraphInvalidError(ConfigurationError):
    """A graph cannot run as it is built."""

    def __init__(self, graph_name: str, problems: Sequence[str]) -> None:
        self.graph_name = graph_name
        self.problems = list(problems)
        listed = "\n".join(f"  - {problem}" for problem in self.problems)
        super().__init__(f"graph {graph_name!r} cannot run:\n{listed}")


class GraphSerializationError(ConfigurationError):
    """A graph cannot be written as data without losing something, or the data would run code that is not allowed."""


class UnstorableError(ConfigurationError):
    """A value cannot be written to a run log or a store without losing something; the message names its place."""


class MissingExtraError(ConfigurationError, ImportError):
    """An optional package is not installed."""

    def __init__(self, what: str, *, extra: str, package: str, then: str = "") -> None:
        self.extra = extra
        self.package = package
        after = f", then: {then}" if then else ""
        super().__init__(
            f"{what} needs the package {package!r}; install it with: pip install 'graphwright[{extra}]'{after}"
        )


class GraphExecutionError(GraphwrightError, RuntimeError):
    """A run ended without an answer. The exception behind it is the `__cause__`, when there was one."""

    def __init__(
        self,
        message: str,
        *,
        graph_name: str = "",
        node_name: str = "",
        error: str = "",
        report: ExecutionReport | None = None,
    ) -> None:
        super().__init__(message)
        self.graph_name = graph_name
        self.node_name = node_name
        self.error = error or message
        self.report = report
        self.messages: list[Any] = []
        """The conversation as far as the run came; every tool call in it has its result."""
        self.response: Any = None
        """The `BotResponse` with what was done, where a bot's stream raises this."""


class GraphIterationLimitError(GraphExecutionError):
    """A limit stopped the run before there was an answer."""

    def __init__(self, message: str, *, limit: int, pending_tools: Sequence[str] = (), **where: Any) -> None:
        super().__init__(message, **where)
        self.limit = limit
        self.pending_tools = list(pending_tools)
        """Names of the tools whose results the model never saw."""


class GraphStoppedError(GraphExecutionError):
    """A hook ended the run before there was an answer."""

    def __init__(
        self, message: str, *, reason: str = "", stopped_by: str = "", pending_tools: Sequence[str] = (), **where: Any
    ) -> None:
        super().__init__(message, **where)
        self.reason = reason
        self.stopped_by = stopped_by
        self.pending_tools = list(pending_tools)


class GraphBudgetExceededError(GraphStoppedError):
    """A token or cost budget ended the run before there was an answer."""


class CodeActionBudgetError(GraphExecutionError):
    """The programs of a code-action run could not do the job within their tool-call cap."""

    def __init__(self, message: str, *, max_tool_calls: int, attempts: int, **where: Any) -> None:
        super().__init__(message, **where)
        self.max_tool_calls = max_tool_calls
        self.attempts = attempts


class GuardrailViolation(GraphwrightError):
    """A guard refused an input or an output. Neither the message nor the report holds what was refused."""

    def __init__(self, report: Any = None, direction: str = "input") -> None:
        self.report = report
        """The `ScanReport` behind it, where there is one."""
        self.direction = direction
        """Where it was refused, such as `input` or `output`."""
        where = direction.replace("_", " ").capitalize()
        super().__init__(f"{where} blocked by safety policy.")


class RunTimeoutError(GraphwrightError, TimeoutError):
    """A run took longer than its time limit and was stopped."""

    def __init__(self, message: str, *, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class RunAbortedError(GraphwrightError):
    """A run was ended by `abort()` before it had an answer."""

    def __init__(self, message: str, *, run_id: str = "") -> None:
        super().__init__(message)
        self.run_id = run_id
        self.messages: list[Any] = []
        """The conversation as far as the run came; every tool call in it has its result."""


class DelegationError(GraphwrightError, RuntimeError):
    """A call to another agent is refused: too deep, or back into one that is at work on the request."""


class ModelError(GraphwrightError):
    """A model call failed."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.status = status
        """HTTP status, when the provider gave one."""
        self.retry_after = retry_after
        """Seconds the provider asked to wait, when it did."""


class EmptyReplyError(ModelError):
    """The model answered with no text and no tool call."""


class ModelRefusalError(ModelError):
    """The model or its provider refused to answer."""

    def __init__(self, message: str, *, refusal: str = "", reason: str = "refusal") -> None:
        super().__init__(message)
        self.refusal = refusal
        """What the model said, as far as it said anything."""
        self.reason = reason


class OutputSchemaError(ModelError):
    """The model's answer did not fit the wanted schema, also after it was told what was wrong."""

    def __init__(self, message: str, *, raw: str = "") -> None:
        super().__init__(message)
        self.raw = raw
        """The last answer, as it came."""


class InterruptError(GraphwrightError):
    """An answer to a paused run does not fit: unknown id, answered already, or the wrong shape."""


class RunPausedError(GraphwrightError):
    """A run paused where a plain answer was promised."""

    def __init__(self, message: str, *, pending: Sequence[Any] = (), run_id: str = "", thread_id: str = "") -> None:
        super().__init__(message)
        self.pending = list(pending)
        self.run_id = run_id
        self.thread_id = thread_id


class ToolError(GraphwrightError):
    """Raise this in a tool to tell the model what went wrong; the run goes on."""


class ToolArgumentError(ToolError):
    """The arguments of a tool call do not fit the tool's parameters."""

    def __init__(self, tool_name: str, problems: Sequence[str]) -> None:
        self.tool_name = tool_name
        self.problems = list(problems)
        """One line a problem: the path of the argument, then what is wrong with it."""
        listed = "\n".join(f"- {problem}" for problem in self.problems)
        super().__init__(f"the arguments of {tool_name!r} do not fit; correct them and call again:\n{listed}")


class MCPError(GraphwrightError):
    """An MCP server could not be used."""

    def __init__(self, message: str = "", *, server: str = "", retryable: bool = False, sent: bool = False) -> None:
        super().__init__(message)
        self.server = server
        """The name under which the server was given."""
        self.retryable = retryable
        """Whether the failure can pass."""
        self.sent = sent
        """Whether the request may have reached the server, so that it may have been carried out."""


class MCPConnectionRejectedError(MCPError):
    """An MCP server rejected the connection or its credentials."""


class MCPCredentialError(MCPError):
    """A credential for an MCP server could not be had, so nothing was sent."""


class SessionError(GraphwrightError):
    """A conversation session could not be used."""


class SessionAccessDenied(SessionError, PermissionError):
    """The session belongs to somebody else."""


class ConversationConflict(SessionError):
    """Somebody else wrote to the session meanwhile; nothing was written."""

    def __init__(self, session_id: str, *, expected: int, actual: int) -> None:
        self.session_id = session_id
        self.expected = expected
        self.actual = actual
        """The version that the session has now."""
        super().__init__(
            f"session {session_id!r} is at version {actual} and not at {expected}: somebody else wrote to it; "
            "load what is new and append again"
        )


class StoreUnavailable(SessionError, RuntimeError):
    """A store could not be reached; nothing was written."""


class ThreadBusy(SessionError):
    """Another run is at work on the same thread."""


class FeatureOffError(GraphwrightError, RuntimeError):
    """A feature was asked for that this agent, or this release, does not have."""


class NodeNotFoundError(GraphwrightError, KeyError):
    """A graph has no node of the given name."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class SandboxUnavailableError(GraphwrightError):
    """A sandbox was asked for and cannot be started."""


class IdentityError(GraphwrightError):
    """An agent's identity cannot be proven."""
