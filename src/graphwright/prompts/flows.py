"""System prompts that change while a conversation goes on: phases, the blocks that each shows, and the ways between."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from graphwright._internal.aio import call_maybe_async
from graphwright.exceptions import ConfigurationError
from graphwright.prompts.blocks import Block, BlockSet, Selection

__all__ = ["ConversationFlow", "FlowSource", "Phase", "as_flow_source", "phase"]

FlowSource = Callable[[], "ConversationFlow"]
"""Makes a new flow for a conversation."""

Handler = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A part of a conversation."""

    name: str
    blocks: Sequence[Block | str] = ()
    """Shown in this phase, after the blocks of the flow."""

    to: Sequence[str] | None = None
    """The phases that may follow; `None` allows every one, an empty list none."""

    initial: bool = False
    """Whether conversations begin here; without one they begin in the first phase."""

    handler: Handler | None = None
    """`handler(flow, message)` reads each message of the user; the name that it returns is the next phase."""


def phase(
    name: str | None = None,
    *,
    blocks: Sequence[Block | str] = (),
    to: Sequence[str] | None = None,
    initial: bool = False,
) -> Callable[[Handler], Handler]:
    """Make a method `(self, message)` of a `ConversationFlow` the handler of a phase, named after it by default.

    The method, async or not, is called with each message of the user while the phase is the current one, before the
    prompt is made. What it returns is the name of the next phase, or `None` to stay.
    """
    if name is not None and not isinstance(name, str):
        raise ConfigurationError(f"@phase got {name!r}; write @phase() or @phase('name') above the method")

    def mark(method: Handler) -> Handler:
        found = Phase(name=name or method.__name__, blocks=blocks, to=to, initial=initial, handler=method)
        method.__flow_phase__ = found  # type: ignore[attr-defined]
        return method

    return mark


class ConversationFlow:
    """The flow of one conversation: where it is, and which prompt that makes.

    A subclass marks its handlers with `@phase`; without a subclass, give `phases`. What has to last from turn to turn
    is kept in `data`, which holds plain values only: it is stored with the conversation.
    """

    blocks: ClassVar[Sequence[Block | str]] = ()
    """Shown in every phase."""

    library: ClassVar[Sequence[Block]] = ()
    """Blocks that are shown once `activate` names them."""

    turn: int
    """How many messages of the user there were."""

    message: str
    """The newest of them."""

    data: dict[str, Any]
    """Yours; texts, numbers, lists and dicts."""

    _phase: str
    _active: list[str]

    def __init__(
        self,
        phases: Iterable[Phase] = (),
        *,
        blocks: Sequence[Block | str] | None = None,
        library: Sequence[Block] | None = None,
        token_budget: int | None = None,
        inspector: Callable[[ConversationFlow, Selection], Any] | None = None,
    ) -> None:
        """Begin in the initial phase.

        `token_budget` is the most tokens of the flow's prompt: over it the blocks of the lowest priority go.
        `inspector(flow, selection)` is shown what each prompt is made of.

        Raises:
            ConfigurationError: there is no phase, two have one name, or one names another that there is not.
        """
        self._phases = _checked([*_marked(type(self)), *phases], type(self).__name__)
        self._blocks = tuple(self.blocks if blocks is None else blocks)
        self._library = {block.name: block for block in (self.library if library is None else library)}
        self._token_budget = token_budget
        self._inspector = inspector
        self.data = {}
        self.reset()
        for each in self._phases.values():
            self._set(each)  # refuses two blocks of one name now, not in the middle of a conversation

    @property
    def current_phase(self) -> str:
        """The name of the phase that the conversation is in."""
        return self._phase

    @property
    def phases(self) -> tuple[str, ...]:
        """The names of the phases."""
        return tuple(self._phases)

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the blocks of the library that are shown."""
        return tuple(self._active)

    async def start(self, message: str = "") -> str:
        """Begin anew with the user's first message, and return the prompt for the answer to it."""
        self.reset()
        return await self.next_turn(message)

    async def next_turn(self, message: str = "") -> str:
        """Take in the user's next message, and return the prompt for the answer to it.

        Raises:
            ConfigurationError: the handler of the phase names a phase that may not follow.
        """
        self.turn += 1
        self.message = message
        handler = self._phases[self._phase].handler
        following = await call_maybe_async(handler, self, message) if handler is not None else None
        if following is not None:
            self.transition(following)
        return self.get_prompt()

    def transition(self, name: str) -> None:
        """Go to a phase; to the current one changes nothing.

        Raises:
            ConfigurationError: there is no such phase, or it may not follow on the current one.
        """
        if name == self._phase:
            return
        allowed = self._phases[self._phase].to
        known = [each for each in self._phases if allowed is None or each in allowed]
        if name not in known:
            raise ConfigurationError(
                f"phase {self._phase!r} does not lead to {name!r}; it leads to {', '.join(known) or 'no other'}"
            )
        self._phase = name

    def activate(self, *names: str) -> None:
        """Show blocks of the library from now on.

        Raises:
            ConfigurationError: the library has no such block.
        """
        for name in names:
            if name not in self._library:
                raise ConfigurationError(
                    f"the library has no block {name!r}; it has {', '.join(self._library) or 'none'}"
                )
            if name not in self._active:
                self._active.append(name)

    def deactivate(self, *names: str) -> None:
        """Show blocks of the library no more."""
        self._active = [name for name in self._active if name not in names]

    def get_prompt(self) -> str:
        """Return the prompt of the conversation as it stands."""
        context = {**self.data, "phase": self._phase, "turn": self.turn, "message": self.message}
        selection = self._set(self._phases[self._phase]).select(context)
        if self._inspector is not None:
            self._inspector(self, selection)
        return selection.text

    def reset(self) -> None:
        """Go back to the beginning; `data` is emptied."""
        self._phase = next((each.name for each in self._phases.values() if each.initial), next(iter(self._phases)))
        self.turn = 0
        self.message = ""
        self._active = []
        self.data.clear()

    def state(self) -> dict[str, Any]:
        """Return what has to be kept to go on with this conversation later; plain values."""
        return {
            "phase": self._phase,
            "turn": self.turn,
            "active": list(self._active),
            "data": copy.deepcopy(self.data),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken. A phase or block that there no longer is gives way to the beginning of it."""
        self.reset()
        if state.get("phase") in self._phases:
            self._phase = state["phase"]
        self.turn = int(state.get("turn", 0))
        self._active = [name for name in state.get("active", ()) if name in self._library]
        self.data.update(copy.deepcopy(dict(state.get("data", {}))))

    def _set(self, current: Phase) -> BlockSet:
        active = [self._library[name] for name in self._active]
        named = [
            Block(f"{where}_{place}", block) if isinstance(block, str) else block
            for where, blocks in (("flow", self._blocks), (current.name, current.blocks), ("active", active))
            for place, block in enumerate(blocks, 1)
        ]
        return BlockSet(named, name=current.name, max_tokens=self._token_budget)


def as_flow_source(flow: Any) -> FlowSource:
    """Return what makes the flow of each conversation, from an instance, a subclass or a function of no argument.

    Raises:
        ConfigurationError: it is none of these, or makes no flow.
    """
    if isinstance(flow, ConversationFlow):
        template = copy.deepcopy(flow)
        return lambda: copy.deepcopy(template)
    if not callable(flow):
        raise ConfigurationError(
            f"flow is {flow!r}; give a ConversationFlow, a subclass of it, or a function that makes one"
        )

    def make() -> ConversationFlow:
        made = flow()
        if not isinstance(made, ConversationFlow):
            raise ConfigurationError(f"flow={flow!r} made {made!r}; it has to make a ConversationFlow")
        return made

    make()  # a mistake in it shows when the agent is built
    return make


def _marked(kind: type) -> list[Phase]:
    """Return the phases of a class and its bases, in the order in which they were written."""
    found: dict[str, Phase] = {}
    for each in reversed(kind.__mro__):
        for name, value in vars(each).items():
            marked = getattr(value, "__flow_phase__", None)
            if isinstance(marked, Phase):
                found[name] = marked
            elif name in found:
                del found[name]  # a subclass has put something else in its place
    return list(found.values())


def _checked(phases: Iterable[Phase], owner: str) -> dict[str, Phase]:
    found: dict[str, Phase] = {}
    for each in phases:
        if not isinstance(each, Phase):
            raise ConfigurationError(f"{each!r} is no Phase")
        if each.name in found:
            raise ConfigurationError(f"two phases of {owner} are named {each.name!r}; give each its own name")
        found[each.name] = each
    if not found:
        raise ConfigurationError(f"{owner} has no phase; mark a method with @phase, or give phases=")
    if len(first := [each.name for each in found.values() if each.initial]) > 1:
        raise ConfigurationError(f"{owner} begins in {' and in '.join(map(repr, first))}; mark one phase as initial")
    for each in found.values():
        if unknown := [name for name in each.to or () if name not in found]:
            raise ConfigurationError(f"phase {each.name!r} leads to {unknown[0]!r}, which {owner} does not have")
    return found
