"""HumanNode: who is asked, what counts as a decision, and where each one leads."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from graphwright.agent import build_agent
from graphwright.engine import GraphExecutionError, GraphState, PromptGraph, PromptGraphEngine, PromptNode, node
from graphwright.engine.nodes import HumanNode
from graphwright.exceptions import ConfigurationError
from graphwright.testing import ScriptedModel


def asking(**options: Any) -> PromptGraph:
    made = [HumanNode("ask", is_entry=True, **options)]
    for name in ("approved", "denied", "late"):

        @node(name, default_next="__end__")
        async def end(state: GraphState, name: str = name) -> str:
            return f"went to {state.current_node}"

        made.append(end)
    return PromptGraph(nodes=made)


EXITS = {"on_approve": "approved", "on_deny": "denied", "on_timeout": "late"}


@pytest.mark.parametrize(
    ("said", "went"),
    [
        (True, "approved"),
        (False, "denied"),
        ("approved", "approved"),
        ("deny", "denied"),
        (SimpleNamespace(approved=True), "approved"),
        (SimpleNamespace(approved=False, reason="no"), "denied"),
        (SimpleNamespace(decision="approve"), "approved"),
        ({"approved": False}, "denied"),
    ],
)
@pytest.mark.parametrize("sync", [True, False])
async def test_every_form_of_decision_takes_its_exit(said: Any, went: str, sync: bool) -> None:
    seen = []

    def answer(prompt: str, state: GraphState) -> Any:
        seen.append((prompt, state.context["amount"]))
        return said

    async def answer_later(prompt: str, state: GraphState) -> Any:
        return answer(prompt, state)

    graph = asking(prompt_template="Pay {amount} to {who}?", **EXITS)
    engine = PromptGraphEngine(graph, human_handler=answer if sync else answer_later)
    result = await engine.ainvoke("pay", context={"amount": 5, "who": ["a"]})
    assert result.text == f"went to {went}"
    assert result.context["ask_output"] == went
    assert seen == [('Pay 5 to ["a"]?', 5)]


@pytest.mark.parametrize("said", [None, "yes please", 1, "", {"approved": "false"}, SimpleNamespace(approved="no")])
async def test_what_is_no_decision_never_approves(said: Any) -> None:
    engine = PromptGraphEngine(asking(**EXITS), human_handler=lambda prompt, state: said)
    with pytest.raises(GraphExecutionError, match=r"human_handler returned .*; return True or False"):
        await engine.ainvoke("pay")


async def test_without_a_handler_the_node_fails_and_says_how_to_give_one() -> None:
    with pytest.raises(GraphExecutionError, match="give human_handler= to build_agent or to PromptGraphEngine"):
        await PromptGraphEngine(asking(**EXITS)).ainvoke("pay")


async def test_a_handler_that_raises_is_a_failure_even_when_it_raises_a_timeout() -> None:
    async def broken(prompt: str, state: GraphState) -> bool:
        raise TimeoutError("the chat server")

    with pytest.raises(GraphExecutionError, match="TimeoutError: the chat server"):
        await PromptGraphEngine(asking(**EXITS), human_handler=broken).ainvoke("pay")


@pytest.mark.parametrize("sync", [True, False])
async def test_a_person_who_does_not_answer_in_time_takes_the_third_exit(sync: bool) -> None:
    released = threading.Event()
    cancelled = []

    def blocks(prompt: str, state: GraphState) -> bool:
        return released.wait(10)

    async def waits(prompt: str, state: GraphState) -> bool:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(prompt)
            raise
        return True

    engine = PromptGraphEngine(asking(timeout=0.05, **EXITS), human_handler=blocks if sync else waits)
    try:
        result = await asyncio.wait_for(engine.ainvoke("pay"), 5)
    finally:
        released.set()
    assert result.text == "went to late"
    assert len(cancelled) == (0 if sync else 1)


async def test_at_the_end_a_timeout_never_lets_a_draft_pass_for_the_answer() -> None:
    graph = PromptGraph(nodes=[PromptNode("draft", is_entry=True), HumanNode("ask", timeout=0.01)])
    graph.always("draft", "ask")

    async def waits(prompt: str, state: GraphState) -> bool:
        await asyncio.Event().wait()
        return True

    result = await PromptGraphEngine(graph, ScriptedModel(["the draft"]), human_handler=waits).ainvoke("write")
    assert result.text == "Nobody decided within 0.01 seconds, so nothing was approved: Approve this action?"


async def test_an_approved_draft_is_the_answer_and_a_denial_without_on_deny_fails() -> None:
    graph = PromptGraph(nodes=[PromptNode("draft", is_entry=True), HumanNode("ask")]).always("draft", "ask")
    said = {"approved": True}
    agent = await build_agent(
        model=ScriptedModel(["one", "two"]), agent_pattern=graph, human_handler=lambda prompt, state: said
    )
    assert (await agent.ainvoke("write")).text == "one"
    said = {"approved": False, "reason": "too long"}
    with pytest.raises(GraphExecutionError, match="denied 'Approve this action\\?': too long; give on_deny"):
        await agent.ainvoke("write")


@pytest.mark.parametrize(
    "template", ["{state.context}", "{who.__class__}", "{who[0]}", "{who!r}", "{who:>10}", "{}", "{0}", "{ {", ""]
)
def test_a_template_fills_in_plain_keys_only(template: str) -> None:
    with pytest.raises(ConfigurationError, match="prompt_template"):
        HumanNode("ask", prompt_template=template)


async def test_a_value_is_not_read_as_a_template_and_a_doubled_brace_is_text() -> None:
    seen = []
    graph = asking(prompt_template="{{x}} {who}", **EXITS)
    engine = PromptGraphEngine(graph, human_handler=lambda prompt, state: seen.append(prompt) or True)
    await engine.ainvoke("pay", context={"who": "{secret}", "secret": "s"})
    assert seen == ["{x} {secret}"]


async def test_a_missing_key_is_named_with_those_that_there_are() -> None:
    engine = PromptGraphEngine(asking(prompt_template="{who}?", **EXITS), human_handler=lambda *given: True)
    with pytest.raises(GraphExecutionError, match="needs 'who', which the context does not have; it has amount"):
        await engine.ainvoke("pay", context={"amount": 5})


def test_validate_sees_the_three_exits() -> None:
    assert asking(**EXITS).validate() == []
    for exit_name in EXITS:
        problems = asking(**{**EXITS, exit_name: "gone"}).validate()
        assert f"{exit_name} of node 'ask' leads to 'gone', which is no node" in problems


@pytest.mark.parametrize("timeout", [0, -1, True, None])
def test_a_timeout_that_is_no_time_is_refused(timeout: Any) -> None:
    with pytest.raises(ConfigurationError, match="give seconds above 0"):
        HumanNode("ask", timeout=timeout)


def test_a_handler_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="human_handler is 'me'"):
        PromptGraphEngine(asking(), human_handler="me")
