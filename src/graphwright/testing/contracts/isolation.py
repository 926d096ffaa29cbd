"""Whether an agent keeps its callers apart, as a test that one with stores of your own can run."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from graphwright.agent import Agent
from graphwright.caller import CallerContext, IsolationKey, get_current_caller, isolation_key_of
from graphwright.exceptions import ConfigurationError, GraphwrightError, InterruptError, SessionAccessDenied
from graphwright.messages import AIMessage, text_of
from graphwright.models.base import ModelCapabilities, ModelRequest

__all__ = ["isolation"]

_ASKED_BY_ALL = "What do you know of me?"
_PAGE = 50


@dataclass(slots=True)
class _Party:
    """One caller, and what nobody else may ever see."""

    caller: CallerContext | None
    name: str
    topic: str = field(default_factory=lambda: f"topic{secrets.token_hex(8)}")
    """What others may ask about."""
    secret: str = field(default_factory=lambda: f"secret{secrets.token_hex(8)}")
    session: str = field(default_factory=lambda: f"session-{secrets.token_hex(8)}")
    runs: list[str] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)
    """What was shown to this caller or to a model in their name: where, and the text."""

    @property
    def key(self) -> IsolationKey:
        """The partition of the caller."""
        return isolation_key_of(self.caller)

    def saw(self, where: str, what: Any) -> None:
        """Note what was shown."""
        self.seen.append((where, what if isinstance(what, str) else repr(what)))


class _Teller:
    """A model that knows the secret of whoever asks, tells it, and notes everything that it is shown."""

    name = "isolation"
    capabilities = ModelCapabilities(streaming=False)

    def __init__(self, parties: Sequence[_Party]) -> None:
        self._parties = {party.key: party for party in parties}

    async def complete(self, request: ModelRequest) -> AIMessage:
        """Answer with the secret of the caller."""
        party = self._parties.get(isolation_key_of(get_current_caller()))
        if party is None:
            raise AssertionError("a model is asked in the name of somebody who called nothing")
        party.saw("what the model is shown", "\n".join(text_of(message) for message in request.messages))
        return AIMessage(content=f"{party.topic} is {party.secret}")


async def isolation(
    make_agent: Callable[[Any], Awaitable[Agent]],
    *,
    callers: tuple[CallerContext | None, CallerContext | None] | None = None,
) -> None:
    """Check that two callers never see anything of each other, in whatever the agent has.

    `make_agent(model)` builds the agent around the model that it is given, with your conversation store, memory,
    cache and run log. `callers` are two who are to be kept apart, by default two random users; `None` is the
    anonymous one. Both call the agent in every way, ask for what the other has said, and reach for the other's
    sessions, runs, memories and answers; at the end each of them is removed.

    Raises:
        AssertionError: one has seen something of the other, or was let at it; the message says where.
    """
    if callers is None:
        callers = (CallerContext(user_id=secrets.token_hex(8)), CallerContext(user_id=secrets.token_hex(8)))
    one, other = _Party(callers[0], "the first caller"), _Party(callers[1], "the second caller")
    if one.key == other.key:
        raise ConfigurationError(f"both callers have the key {str(one.key)!r}; give two who are to be kept apart")
    agent = await make_agent(_Teller([one, other]))
    try:
        for _ in range(2):  # the second time around there is something to be found
            for party, stranger in ((one, other), (other, one)):
                await _speaks(agent, party, stranger)
                _check_seen(party, stranger)
        for party, stranger in ((one, other), (other, one)):
            await _reaches_for(agent, party, stranger)
            _check_seen(party, stranger)
        for party, stranger in ((one, other), (other, one)):
            await _is_removed(agent, party, stranger)
    finally:
        await agent.shutdown()


async def _speaks(agent: Agent, party: _Party, stranger: _Party) -> None:
    """Say and ask things in every way of running."""
    questions = (f"Remember: {party.topic} is {party.secret}.", f"What is {stranger.topic}?", _ASKED_BY_ALL)
    for question in questions:
        result = await agent.ainvoke(question, caller=party.caller)
        party.saw("what ainvoke returns", [message.content for message in result.messages])
        if result.thread_id:
            party.runs.append(result.run_id)
        events = [event.to_dict() async for event in agent.astream_with_tools(question, caller=party.caller)]
        party.saw("what astream_with_tools yields", events)
        party.saw("what astream yields", [chunk async for chunk in agent.astream(question, caller=party.caller)])
        party.saw("what chat returns", await agent.chat(question, session_id=party.session, caller=party.caller))
        stream = agent.chat_stream(question, session_id=party.session, caller=party.caller)
        party.saw("what chat_stream yields", [event.to_dict() async for event in stream])


async def _reaches_for(agent: Agent, party: _Party, stranger: _Party) -> None:
    """Try to get at what the other has by its name."""
    if agent._kept()["conversations"] is not None:
        await _reaches_for_sessions(agent, party, stranger)
    if agent.runlog is not None:
        await _reaches_for_runs(agent, party, stranger)
    if agent.provider is not None:
        found = await agent.provider.search(stranger.topic, limit=_PAGE, user_id=str(party.key))
        party.saw("what a search of the memory finds", found)


async def _reaches_for_sessions(agent: Agent, party: _Party, stranger: _Party) -> None:
    session, caller = stranger.session, party.caller
    listed = [info.session_id for info in await agent.list_sessions(caller=caller, limit=_PAGE)]
    assert session not in listed, f"{party.name} is listed a session of {stranger.name}"
    assert party.session in listed, f"{party.name} is not listed their own session"
    if stranger.key == IsolationKey.ANONYMOUS:
        # What nobody owns may be looked at by whoever knows its id; it is still no part of their own conversations.
        await _is_refused("chat() in a session of nobody", lambda: agent.chat("?", session_id=session, caller=caller))
        return
    await _is_refused("get_session()", lambda: agent.get_session(session, caller=caller))
    await _is_refused("update_session()", lambda: agent.update_session(session, title="mine", caller=caller))
    await _is_refused("delete_session()", lambda: agent.delete_session(session, caller=caller))
    await _is_refused("chat()", lambda: agent.chat("What was said here?", session_id=session, caller=caller))
    assert await agent.get_session(session, caller=stranger.caller) is not None, f"{stranger.name} lost a session"


async def _reaches_for_runs(agent: Agent, party: _Party, stranger: _Party) -> None:
    log = agent.runlog
    assert log is not None
    owner = party.caller.isolation_key if party.caller is not None else None
    for thread in await log.threads(owner=owner, limit=_PAGE):
        rows = await log.thread_rows(thread.thread_id)
        party.saw("what the run log has on threads of theirs", rows)
    for run in stranger.runs:
        await _is_refused("resume()", partial(agent.resume, run, caller=party.caller))
        await _is_refused("abandon()", partial(agent.abandon, run, caller=party.caller))
    await _is_refused("a run on a thread", lambda: agent.ainvoke("?", session_id=stranger.session, caller=party.caller))


async def _is_refused(what: str, attempt: Callable[[], Awaitable[Any]]) -> None:
    refusal = ""
    try:
        await attempt()
    except (SessionAccessDenied, InterruptError) as error:
        refusal = str(error)
    except GraphwrightError as error:
        raise AssertionError(f"{what} of somebody else fails instead of being refused: {error}") from error
    assert refusal, f"{what} of somebody else is let through"
    assert "secret" not in refusal, f"{what} is refused with a text that tells of what it refuses: {refusal}"


async def _is_removed(agent: Agent, party: _Party, stranger: _Party) -> None:
    """Remove one, and look whether nothing is left of them and everything of the other."""
    if party.caller is None or party.caller.isolation_key is None:
        return
    before = await _left(agent, stranger)
    removed = await agent.purge_user(caller=party.caller)
    for store, number in (await _left(agent, party)).items():
        assert number == 0, f"{party.name} was removed, and {store} still has {number} of theirs ({removed})"
    after = await _left(agent, stranger)
    assert after == before, f"removing {party.name} took from {stranger.name}: {before} before, {after} after"
    again = await agent.purge_user(caller=party.caller)
    assert not any(again.values()), f"{party.name} was removed, and removing them again finds {again}"


async def _left(agent: Agent, party: _Party) -> dict[str, int]:
    left: dict[str, int] = {}
    owner = party.caller.isolation_key if party.caller is not None else None
    if agent._kept()["conversations"] is not None:
        left["conversations"] = len(await agent.list_sessions(caller=party.caller, limit=_PAGE))
    if agent.runlog is not None:
        left["runlog"] = len(await agent.runlog.threads(owner=owner, limit=_PAGE))
    if agent.provider is not None:
        left["memory"] = len(await agent.provider.search(party.topic, limit=_PAGE, user_id=str(party.key)))
    return left


def _check_seen(party: _Party, stranger: _Party) -> None:
    for where, text in party.seen:
        assert stranger.secret not in text, f"{party.name} sees what {stranger.name} said, in {where}: {text[:500]}"
    party.seen.clear()
