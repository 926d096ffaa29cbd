"""Let the flow of a conversation make the system prompt of each turn."""

from __future__ import annotations

import copy
import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from graphwright.caller import IsolationKey, get_current_caller, get_current_session_id, isolation_key_of
from graphwright.exceptions import ConfigurationError
from graphwright.interrupts import Interrupted
from graphwright.messages import text_of
from graphwright.prompts.flows import ConversationFlow, FlowSource
from graphwright.runtime.layers.prompt import has_prompt, messages_of

if TYPE_CHECKING:
    from graphwright.runtime.layers.store import Turn
    from graphwright.runtime.request import RunRequest
    from graphwright.runtime.stack import Handler

__all__ = ["FLOW", "Flows"]

FLOW = "_flow"
"""Key in the metadata of a user's stored message that holds where the flow was after it."""

_MOST_KEPT = 10_000

Place = tuple[IsolationKey, str | None]

_NOBODY: Place = (IsolationKey.ANONYMOUS, None)


class Flows:
    """The flows of an agent, one a conversation: of a caller's session, or of the caller where there is no session.

    Where a store keeps the conversation, where its flow is stands in the user's message of each turn, and holds or is
    lost with it. Else it is in memory, for the conversations that went on last.
    """

    def __init__(self, source: FlowSource, instructions: str, *, most_kept: int = _MOST_KEPT) -> None:
        """`instructions` are appended to what a flow says; empty where the agent was given none."""
        self._source = source
        self._instructions = instructions
        self._most = most_kept
        self._kept: OrderedDict[Place, ConversationFlow] = OrderedDict()

    async def layer(self, request: RunRequest, call_next: Handler) -> Any:
        """Make the prompt of a turn; a turn that fails leaves the flow where it was."""
        turn = request.conversation
        if has_prompt(request):
            result = await call_next(request)
            self._recall(request, turn)
            return result
        place = (isolation_key_of(get_current_caller()), get_current_session_id())
        flow, text = await self._advanced(request, place, turn)
        own = self._instructions if request.system_prompt is None else request.system_prompt
        request.system_prompt = "\n\n".join(part for part in (text, own) if part)
        try:
            result = await call_next(request)
        except Interrupted:
            # A part of another run: it goes on with the prompt that it has, and its turn is counted here.
            self._keep(place, flow)
            raise
        if turn is not None and turn.version is not None:
            turn.marks[FLOW] = flow.state()
        self._keep(place, flow)
        return result

    def _recall(self, request: RunRequest, turn: Turn | None) -> None:
        """Keep the flow of a run that went on, as it was when the run began: that leg may have been cut off."""
        state = request.notes.get(FLOW)
        if state is None:
            return
        if turn is not None and turn.version is not None:
            turn.marks[FLOW] = state["flow"]
        flow = self._source()
        flow.restore(state["flow"])
        self._keep((isolation_key_of(get_current_caller()), state["session"]), flow)

    def of(self, place: Place) -> ConversationFlow | None:
        """Return a copy of the flow of a conversation as it was after its last turn here."""
        found = self._kept.get(place)
        return copy.deepcopy(found) if found is not None else None

    async def purge_user(self, key: IsolationKey) -> int:
        """Forget every flow of a caller, and return how many there were."""
        theirs = [place for place in self._kept if place[0] == key]
        for place in theirs:
            del self._kept[place]
        return len(theirs)

    async def _advanced(self, request: RunRequest, place: Place, turn: Turn | None) -> tuple[ConversationFlow, str]:
        said = [text_of(message) for message in messages_of(request) if message.type == "human"]
        if turn is None and place == _NOBODY:
            # Nobody's: what was said is all that there is to tell where it has got to.
            flow, text = self._source(), ""
            for each in said:
                text = await flow.next_turn(each)
            return flow, text
        flow = self._found(place, turn)
        text = await flow.next_turn(said[-1] if said else "")
        if turn is not None or request.journal is not None:
            request.notes[FLOW] = {"flow": _storable(flow), "session": place[1]}
        return flow, text

    def _found(self, place: Place, turn: Turn | None) -> ConversationFlow:
        if turn is not None and turn.version is not None:
            flow = self._source()
            if isinstance(state := turn.found.get(FLOW), dict):
                flow.restore(state)
                turn.marks[FLOW] = state  # a turn that fails is kept too
            return flow
        kept = self._kept.get(place)
        return self._source() if kept is None else copy.deepcopy(kept)

    def _keep(self, place: Place, flow: ConversationFlow) -> None:
        if place == _NOBODY:
            return
        self._kept[place] = flow
        self._kept.move_to_end(place)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


def _storable(flow: ConversationFlow) -> dict[str, Any]:
    state = flow.state()
    try:
        json.dumps(state, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"the data of the flow cannot be kept with the conversation: {error}; keep texts, numbers, lists and dicts"
        ) from error
    return state
