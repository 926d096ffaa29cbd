"""Ask other agents: each peer is a tool of the agent that may ask it.

A peer of ours runs inside the asking run: its events carry a path, its questions to people surface at the top and are
answered there, what it uses counts for the asking run, and an abort reaches it. The caller stays who it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.engine.base import NodeContext
from graphwright.engine.journal import Inside
from graphwright.exceptions import ConfigurationError, DelegationError, ToolArgumentError, ToolError
from graphwright.interrupts import Interrupted
from graphwright.messages import text_of
from graphwright.run_events import RunEvent
from graphwright.run_scope import current_call, run_scope
from graphwright.tools import Tool
from graphwright.tools.base import GatedCall
from graphwright.types import ToolCall, ToolSpec

__all__ = ["BroadcastTool", "CrossAgent", "PeerTool", "get_delegation_chain", "owned_by", "peer_tools"]

_NAME_CHARS = 50


@dataclass(frozen=True, slots=True)
class CrossAgent:
    """An agent that another one may ask."""

    agent: Any
    """Anything with `ainvoke({"messages": [...]})`: an agent of `build_agent`, a LangChain `Runnable`."""

    description: str = ""
    """What the peer is for, in words for the model that may ask it."""

    timeout: float | None = None
    """Seconds to wait for its answer; `None` leaves it to `delegation_timeout`."""


@dataclass(frozen=True, slots=True)
class _Link:
    """One delegation of the request: whom was asked, and by which agent."""

    name: str
    agent: Any
    asked_by: Any


_chain: ContextVar[tuple[_Link, ...]] = ContextVar("graphwright_delegations", default=())


def get_delegation_chain() -> tuple[str, ...]:
    """Return the names of the peers through which the request came here, the first one first."""
    return tuple(link.name for link in _chain.get())


def peer_tools(
    peers: Mapping[str, CrossAgent],
    *,
    include_broadcast: bool = False,
    max_depth: int = 3,
    timeout: float | None = None,
) -> list[PeerTool | BroadcastTool]:
    """Return the tools by which an agent asks its peers.

    Raises:
        ConfigurationError: a name or a peer does not fit.
    """
    if isinstance(max_depth, bool) or not isinstance(max_depth, int) or max_depth < 1:
        raise ConfigurationError(f"max_delegation_depth is {max_depth!r}; give a whole number of at least 1")
    _check_seconds("delegation_timeout", timeout)
    asked: list[PeerTool] = []
    for name, peer in peers.items():
        asked.append(PeerTool(name, _peer(name, peer), max_depth=max_depth, timeout=timeout))
    if include_broadcast and not asked:
        raise ConfigurationError("include_broadcast is set and there are no cross_agents; give some, or leave it off")
    return [*asked, BroadcastTool(asked)] if include_broadcast else list(asked)


def _peer(name: Any, peer: Any) -> CrossAgent:
    if not isinstance(name, str) or not name.replace("_", "").replace("-", "").isalnum() or len(name) > _NAME_CHARS:
        raise ConfigurationError(
            f"the peer name {name!r} does not fit; use 1 to {_NAME_CHARS} letters, digits, '_' and '-'"
        )
    if not isinstance(peer, CrossAgent):
        raise ConfigurationError(f"cross_agents[{name!r}] is {peer!r}; give a CrossAgent(agent, description=...)")
    if not callable(getattr(peer.agent, "ainvoke", None)):
        raise ConfigurationError(f"the agent of cross_agents[{name!r}] is {peer.agent!r}, which has no ainvoke()")
    _check_seconds(f"timeout of cross_agents[{name!r}]", peer.timeout)
    return peer


def _check_seconds(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0):
        raise ConfigurationError(f"{name} is {value!r}; give seconds above 0, or None for no limit")


class PeerTool(Tool):
    """Asks one peer."""

    # It runs an agent, whose own calls are looked up in the log when the run goes on.
    reenterable = True

    def __init__(self, name: str, peer: CrossAgent, *, max_depth: int, timeout: float | None) -> None:
        self.peer_name = name
        self.peer = peer
        self.owner: Any = None
        """The agent that asks; set when it is built."""
        self.timeout = peer.timeout if peer.timeout is not None else timeout
        self._max_depth = max_depth
        description = f"Ask the agent {name!r} and return its answer."
        self.spec = ToolSpec(
            name=f"ask_agent_{name}",
            description=f"{description} {peer.description}".rstrip(),
            parameters={
                "type": "object",
                "properties": {
                    "message": {
                        "type": "string",
                        "description": "what the agent is to do or answer; it knows nothing of this conversation",
                    },
                    "context": {
                        "description": "what it needs to know besides: text, or an object",
                        "type": ["string", "object", "null"],
                    },
                },
                "required": ["message"],
                "additionalProperties": False,
            },
        )

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments.

        Raises:
            ToolArgumentError: they do not fit.
        """
        return _checked(self.name, args, {"message", "context"})

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> str:
        """Ask the peer.

        Raises:
            DelegationError: the request came too far already, or back to an agent that is at work on it.
        """
        return await self.ask(args["message"], args.get("context"), config, call.id)

    async def ask(self, message: str, context: Any, config: dict[str, Any] | None, key: str) -> str:
        """Return the answer of the peer; `key` names the question within the call."""
        chain = _chain.get()
        self._check(chain)
        token = _chain.set((*chain, _Link(self.peer_name, self.peer.agent, self.owner)))
        try:
            return await self._answer(_question(message, context), config, key)
        finally:
            _chain.reset(token)

    def _check(self, chain: Sequence[_Link]) -> None:
        path = " -> ".join([*(link.name for link in chain), self.peer_name])
        if len(chain) >= self._max_depth:
            raise DelegationError(
                f"the request may be passed on {self._max_depth} times at most, and {path} is one more; "
                "answer with what you have"
            )
        at_work = [self.owner, *(agent for link in chain for agent in (link.agent, link.asked_by))]
        if any(agent is self.peer.agent for agent in at_work):
            raise DelegationError(
                f"{self.peer_name!r} is at work on this very request ({path}); answer with what you have"
            )

    async def _answer(self, question: str, config: dict[str, Any] | None, key: str) -> str:
        messages = {"messages": [{"role": "user", "content": question}]}
        ask_inside = getattr(self.peer.agent, "ask_inside", None)
        inside = _place(self.peer_name, key)
        if callable(ask_inside) and inside is not None:
            return str(await ask_inside(messages, config, inside=inside.place, emit=inside.emit))
        return _text_in(await self.peer.agent.ainvoke(messages), self.peer_name)

    def __repr__(self) -> str:
        return f"PeerTool({self.peer_name!r})"


class BroadcastTool(Tool):
    """Asks several peers the same, at the same time. A peer that needs approval is not reached this way."""

    reenterable = True

    def __init__(self, peers: Sequence[PeerTool]) -> None:
        self._peers = {tool.peer_name: tool for tool in peers}
        waits = [tool.timeout for tool in peers]
        self.timeout = None if None in waits else max(wait for wait in waits if wait is not None)
        listed = "; ".join(f"{name}: {tool.peer.description or 'no description'}" for name, tool in self._peers.items())
        self.spec = ToolSpec(
            name="broadcast_to_agents",
            description=f"Ask several agents the same question at the same time. The agents: {listed}.",
            parameters={
                "type": "object",
                "properties": {
                    "message": {"type": "string", "description": "what all of them are to answer"},
                    "agents": {
                        "type": ["array", "null"],
                        "items": {"type": "string", "enum": list(self._peers)},
                        "description": "whom to ask; everybody when left out",
                    },
                    "context": {"type": ["string", "object", "null"]},
                },
                "required": ["message"],
                "additionalProperties": False,
            },
        )

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments.

        Raises:
            ToolArgumentError: they do not fit.
        """
        checked = _checked(self.name, args, {"message", "agents", "context"})
        named = checked.get("agents")
        if named is not None:
            unknown = [name for name in named if name not in self._peers] if isinstance(named, list) else [named]
            if unknown or not named:
                raise ToolArgumentError(
                    self.name, [f"agents: should be a list of some of {', '.join(self._peers)}, not {named!r}"]
                )
        return checked

    async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> str:
        """Ask them, and return what each said, in the order of the peers."""
        chosen = [tool for name, tool in self._peers.items() if name in (args.get("agents") or self._peers)]
        tasks = [asyncio.ensure_future(self._ask(tool, args, call, config)) for tool in chosen]
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        paused = [error for task in tasks if isinstance(error := task.exception(), Interrupted)]
        if paused:
            raise Interrupted([item for pause in paused for item in pause.pending])
        said = {tool.peer_name: task.result() for tool, task in zip(chosen, tasks, strict=True)}
        return "\n\n".join(f"{name}: {text}" for name, text in said.items())

    async def _ask(self, tool: PeerTool, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> str:
        question = {"message": args["message"], "context": args.get("context")}
        refusal = await _gated(tool, question, call)
        if refusal:
            return refusal
        try:
            async with asyncio.timeout(tool.timeout):
                return await tool.ask(args["message"], args.get("context"), config, f"{call.id}/{tool.peer_name}")
        except Exception as error:  # one peer that fails does not take the answers of the others
            return f"no answer ({type(error).__name__}: {error})"


@dataclass(slots=True)
class _Placed:
    place: Inside
    emit: Any


async def _gated(tool: PeerTool, args: dict[str, Any], call: ToolCall) -> str:
    """Return why a peer cannot be asked without a call of its own tool; empty when it can."""
    found = current_call.get()
    gate = found[1].gate if found is not None else None
    if gate is None:
        return ""
    own = ToolCall(f"{call.id}/{tool.peer_name}", tool.name, args)
    verdict = await gate.judge(GatedCall(own, tool, args, 0, 1))
    if verdict.action == "allow" or (verdict.action == "ask" and found is not None and found[0].approved):
        return ""  # whoever approved this broadcast has seen whom it asks
    return f"not asked: {tool.name} needs its own approval; call it by itself"


def _place(peer_name: str, key: str) -> _Placed | None:
    """Return where in the run that is going on here the peer's run belongs."""
    found, context = current_call.get(), run_scope.get()
    if found is None or not isinstance(context, NodeContext):
        return None
    entry, run, batch = found
    path = "/".join(part for part in (run.path, run.node, f"@{peer_name}") if part)
    place = Inside(path, context.usage, gate=run.gate)
    if batch is not None and context.journal is not None:
        place.journal = context.journal
        place.frame = f"{batch.inner_frame(entry.call)}/@{peer_name}/"
    return _Placed(place, _forwarded(run.emit, run.run_id) if run.emit is not None else None)


def _forwarded(emit: Any, run_id: str) -> Any:
    async def forward(event: RunEvent) -> None:
        event.run_id = run_id
        await emit(event)

    return forward


def _question(message: str, context: Any) -> str:
    if not context:
        return message
    return f"{message}\n\nContext:\n{context if isinstance(context, str) else dumps(context)}"


def _text_in(result: Any, name: str) -> str:
    messages = result.get("messages") if isinstance(result, Mapping) else None
    last = messages[-1] if messages else result
    text = last if isinstance(last, str) else text_of(last) if hasattr(last, "content") else ""
    if isinstance(result, Mapping) and result.get("__interrupt__"):
        raise ToolError(f"the agent {name!r} is paused and waits for a person; it gave no answer")
    if not text:
        raise ToolError(f"the agent {name!r} gave no answer")
    return text


def _checked(name: str, args: dict[str, Any], known: set[str]) -> dict[str, Any]:
    problems = [f"{key}: there is no such argument" for key in args if key not in known]
    if not isinstance(args.get("message"), str) or not args["message"].strip():
        problems.append("message: should be text that is not empty")
    if args.get("context") is not None and not isinstance(args["context"], (str, dict)):
        problems.append("context: should be text or an object")
    if problems:
        raise ToolArgumentError(name, problems)
    return args


def owned_by(tools: Sequence[Any], agent: Any) -> None:
    """Tell the peers' tools whose they are."""
    for tool in tools:
        if isinstance(tool, PeerTool):
            tool.owner = agent
