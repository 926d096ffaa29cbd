"""The MCP servers of an agent: opened with it, looked at between its runs, closed with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphwright._internal.aio import call_maybe_async
from graphwright.engine.execution import PromptGraphEngine
from graphwright.engine.interrupt import MCP_INPUT, interrupt
from graphwright.exceptions import ConfigurationError, ToolError
from graphwright.messages import AIMessage, HumanMessage, SystemMessage, text_of
from graphwright.models.base import ModelRequest
from graphwright.run_events import ToolProgress
from graphwright.run_scope import current_call, current_run
from graphwright.tools import ToolSet
from graphwright.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

    from graphwright.identity import AgentIdentity
    from graphwright.interrupts import Interrupt
    from graphwright.mcp.client import MCPPool, Sampling

__all__ = ["Approver", "ServerOptions", "ServerTools", "check_mcp_input"]

Approver = Callable[[str, str, str, Mapping[str, Any]], Awaitable[bool]]
"""`(server, tool, message, schema) -> whether a person says yes`, for a server's question that only wants that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions:
    """Which MCP servers an agent has, and what they may do."""

    servers: Mapping[str, Any] | str | Path | None = None
    expose_resources: bool = False
    expose_prompts: bool = False
    on_tool_progress: Callable[..., Any] | None = None
    """`on_tool_progress(tool_name, progress, total, message)`, sync or async."""
    mcp_sampling: Any = None
    """True lets servers ask the agent's model, within the limits of `Sampling`; a `Sampling` says which."""
    trace_tools: bool = False

    def __post_init__(self) -> None:
        if self.on_tool_progress is not None and not callable(self.on_tool_progress):
            raise ConfigurationError(
                f"on_tool_progress is {self.on_tool_progress!r}; give a function of (tool_name, progress, total, "
                "message)"
            )
        if not self.servers:
            for keyword in ("expose_resources", "expose_prompts", "mcp_sampling"):
                if getattr(self, keyword):
                    raise ConfigurationError(
                        f"{keyword} is set and there are no servers; give servers=, or leave it out"
                    )


class ServerTools:
    """Keeps the tools of an engine those of its servers."""

    def __init__(
        self,
        engine: PromptGraphEngine,
        options: ServerOptions,
        *,
        identity: AgentIdentity | None = None,
        can_pause: bool = False,
        approver: Approver | None = None,
    ) -> None:
        """Prepare; nothing is started yet. `can_pause` says that runs have a log, in which a question can wait.

        Raises:
            ConfigurationError: a server's spec does not fit.
        """
        from graphwright.mcp.client import MCPPool

        self._engine = engine
        self._own = engine.tools
        self._taken = frozenset(_names_of(engine))
        self._offered: list[Any] | None = None
        self._options, self._approver = options, approver
        self.pool: MCPPool = MCPPool(
            options.servers,
            resources=bool(options.expose_resources),
            prompts=bool(options.expose_prompts),
            identity=identity if identity is not None and identity.has_credential else None,
            on_elicit=self._ask if can_pause or approver is not None else None,
            on_progress=self._report,
            wants_progress=self._wants_progress,
            sampling=_sampling(options.mcp_sampling, engine),
        )

    async def open(self) -> None:
        """Connect to the servers and offer their tools.

        Raises:
            MCPError: a server cannot be used.
        """
        await self.pool.connect()
        self._offer()

    async def refresh(self) -> None:
        """Look again at what changed since the last run; a run that is going on keeps its tools."""
        if self.pool.stale:
            await self.pool.refresh()
            self._offer()

    async def close(self) -> None:
        """End all sessions."""
        await self.pool.close()

    def _offer(self) -> None:
        tools = self.pool.tools(taken=self._taken)
        if tools is not self._offered:
            self._offered = tools
            self._engine.use_tools(ToolSet([*self._own, *tools]))

    def _wants_progress(self) -> bool:
        found = current_call.get()
        if found is None:
            return False
        return self._options.trace_tools or self._options.on_tool_progress is not None or found[1].emit is not None

    async def _report(self, server: str, tool: str, progress: float, total: float | None, message: str | None) -> None:
        entry, run, _ = current_call.get()
        name = entry.call.name
        if self._options.trace_tools:
            share = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
            print(f"[tool] {name} at {share}{f': {message}' if message else ''}", flush=True)
        if run.emit is not None:
            await run.emit(
                ToolProgress(run.node, entry.call, progress, total, message, run_id=run.run_id, path=run.path)
            )
        if self._options.on_tool_progress is not None:
            await call_maybe_async(self._options.on_tool_progress, name, progress, total, message)

    async def _ask(self, server: str, message: str, schema: dict[str, Any]) -> Mapping[str, Any] | None:
        """Ask a person what a server asks for: whoever approves, where a yes will do, else by a pause of the run."""
        from graphwright.mcp.client.answers import gate_field

        found = current_call.get()
        if found is None:
            return None
        entry, _, batch = found
        field = gate_field(schema)
        if self._approver is not None and field is not None:
            if not await self._approver(server, entry.call.name, message, schema):
                return None
            return {"action": "accept", "content": {field: True} if field else {}}
        if batch is None:
            return None
        question = {"server": server, "tool": entry.call.name, "message": message, "schema": schema}
        answer: Mapping[str, Any] = await interrupt(MCP_INPUT, question)
        # Before the server acts on it: a call that was cut off after its answer is not made again.
        await batch.frame.journal.flush()
        return answer


def check_mcp_input(item: Interrupt, answer: Any) -> Any:
    """Return the answer to a server's question, once it fits.

    Raises:
        InterruptError: it does not.
    """
    from graphwright.mcp.client.answers import check_input

    return check_input(item, answer)


def _names_of(engine: PromptGraphEngine) -> list[str]:
    """Return the names that tools of the agent or of a node have already."""
    names = list(engine.tools.names)
    for node in engine.graph.nodes.values():
        own = getattr(node, "tools", None)
        names += own.names if isinstance(own, ToolSet) else ()
    return names


def _sampling(given: Any, engine: PromptGraphEngine) -> Sampling | None:
    from graphwright.mcp.client import Sampling

    if given is None or given is False or isinstance(given, Sampling):
        return given or None
    if given is not True:
        raise ConfigurationError(f"mcp_sampling is {given!r}; give True, or a Sampling with its limits")

    async def complete(server: str, request: dict[str, Any]) -> str:
        if engine.model is None:
            raise ToolError("the agent has no model of its own")
        kinds = {"user": HumanMessage, "assistant": AIMessage}
        messages = [kinds[entry["role"]](content=entry["content"]) for entry in request["messages"]]
        if request["system_prompt"]:
            messages.insert(0, SystemMessage(content=request["system_prompt"]))
        reply = await engine.model.complete(
            ModelRequest(messages=messages, max_tokens=request["max_tokens"], temperature=request["temperature"])
        )
        scope = current_run()
        if scope is not None and (used := Usage.from_metadata(reply.usage_metadata)) is not None:
            scope.usage.add(used)
        return text_of(reply)

    return Sampling(handler=complete, model_name=engine.model.name if engine.model is not None else "graphwright")
