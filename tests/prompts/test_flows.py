"""Flows: phases, the ways between them, and the prompts they make."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError
from graphwright.prompts import Block
from graphwright.prompts.flows import ConversationFlow, Phase, as_flow_source, phase


class Booking(ConversationFlow):
    blocks = (Block("who", "You book tables.", required=True),)
    library = (Block("wine", "Recommend a wine."),)

    @phase(blocks=[Block("greet", "Ask for the day.")], to=["party"])
    def day(self, message: str) -> str | None:
        if "friday" in message:
            self.data["day"] = "friday"
            return "party"
        return None

    @phase("party", blocks=[Block("size", lambda seen: f"Ask how many come on {seen['day']}.")])
    async def how_many(self, message: str) -> None:
        if message.isdigit():
            self.activate("wine")


async def test_a_flow_goes_from_phase_to_phase_with_what_the_user_says() -> None:
    flow = Booking()

    assert await flow.start("hello") == "You book tables.\n\nAsk for the day."
    assert await flow.next_turn("on friday") == "You book tables.\n\nAsk how many come on friday."
    assert await flow.next_turn("4") == "You book tables.\n\nAsk how many come on friday.\n\nRecommend a wine."
    assert (flow.current_phase, flow.turn, flow.active, flow.data) == ("party", 3, ("wine",), {"day": "friday"})

    flow.deactivate("wine")
    assert flow.get_prompt() == "You book tables.\n\nAsk how many come on friday."

    assert await flow.start("hello again") == "You book tables.\n\nAsk for the day."
    assert (flow.turn, flow.data, flow.active) == (1, {}, ())


async def test_a_phase_leads_only_where_it_says() -> None:
    flow = Booking([Phase(name="bill", to=[])])
    with pytest.raises(ConfigurationError, match=r"'day' does not lead to 'bill'; it leads to party"):
        flow.transition("bill")
    assert flow.current_phase == "day"

    flow.transition("party")
    flow.transition("bill")
    flow.transition("bill")
    with pytest.raises(ConfigurationError, match=r"'bill' does not lead to 'day'; it leads to no other"):
        flow.transition("day")


async def test_the_state_of_a_flow_is_plain_and_goes_on_in_another() -> None:
    flow = Booking()
    await flow.start("friday")
    await flow.next_turn("4")
    kept = json.loads(json.dumps(flow.state()))

    twin = Booking()
    twin.restore(kept)

    assert twin.get_prompt() == flow.get_prompt()
    assert twin.state() == flow.state()
    twin.data["day"] = "monday"
    assert flow.data["day"] == "friday"


def test_a_state_of_an_earlier_version_of_the_flow_begins_again_where_it_has_to() -> None:
    flow = Booking()
    flow.restore({"phase": "gone", "turn": 7, "active": ["gone", "wine"], "data": {"a": 1}})
    assert (flow.current_phase, flow.turn, flow.active, flow.data) == ("day", 7, ("wine",), {"a": 1})


async def test_blocks_of_low_priority_give_way_to_the_budget_and_the_inspector_sees_it() -> None:
    seen: list[tuple[str, tuple[str, ...]]] = []
    flow = ConversationFlow(
        [Phase(name="one", blocks=[Block("keep", "short", priority=9), Block("long", "word " * 100, priority=1)])],
        token_budget=20,
        inspector=lambda flow, selection: seen.append((flow.current_phase, selection.dropped)),
    )

    assert await flow.start() == "short"
    assert seen == [("one", ("long",))]


class Base(ConversationFlow):
    @phase()
    def first(self, message: str) -> None: ...

    @phase(initial=True)
    def second(self, message: str) -> None: ...


class Derived(Base):
    @phase("first", blocks=["other"])
    def first(self, message: str) -> None: ...


def test_a_subclass_takes_over_phases_and_may_replace_them() -> None:
    flow = Derived()
    assert flow.phases == ("first", "second")
    assert flow.current_phase == "second"
    flow.transition("first")
    assert flow.get_prompt() == "other"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (ConversationFlow, "has no phase"),
        (lambda: ConversationFlow([Phase(name="a"), Phase(name="a")]), "are named 'a'"),
        (lambda: ConversationFlow([Phase(name="a", to=["b"])]), "leads to 'b'"),
        (lambda: ConversationFlow([Phase(name=n, initial=True) for n in "ab"]), "begins in 'a' and in 'b'"),
        (lambda: ConversationFlow(["a"]), "'a' is no Phase"),  # type: ignore[list-item]
        (lambda: Booking().activate("beer"), "no block 'beer'; it has wine"),
        (lambda: ConversationFlow([Phase(name="a", blocks=[Block("x", "1"), Block("x", "2")])]), "two blocks"),
        (lambda: phase(lambda self, message: None), "write @phase"),  # type: ignore[arg-type, return-value]
    ],
)  # fmt: skip
def test_a_flow_that_cannot_work_is_refused_when_it_is_made(make: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        make()


async def test_each_conversation_gets_its_own_flow_from_any_kind_of_source() -> None:
    template = Booking()
    for given in (template, Booking, lambda: Booking()):
        make = as_flow_source(given)
        one, two = make(), make()
        await one.start("friday")
        assert (one.current_phase, two.current_phase, template.current_phase) == ("party", "day", "day")


@pytest.mark.parametrize(("given", "problem"), [("x", "flow is 'x'"), (dict, "made {}")])
def test_what_is_no_flow_is_refused(given: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        as_flow_source(given)
