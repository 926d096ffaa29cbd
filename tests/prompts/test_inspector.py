"""The inspector shows exactly what a node sends, and asks no model."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from graphwright.engine import GraphState, PromptGraph, PromptGraphEngine, PromptNode, node
from graphwright.engine.processors import context_enricher
from graphwright.engine.prompt_inspector import inspect_prompt
from graphwright.exceptions import ConfigurationError
from graphwright.models.base import ModelCapabilities
from graphwright.prompts import Block, ChainOfThought, Critic
from graphwright.testing import ScriptedModel


def look(at: str) -> str:
    """Look at something."""
    return "seen"


class Fruit(BaseModel):
    name: str


def say(**options: Any) -> PromptNode:
    return PromptNode("say", instructions="Answer.", is_entry=True, **options)


async def test_the_view_is_what_a_run_sends() -> None:
    step = say(
        tools=[look],
        blocks=[Block("who", lambda context: f"For {context['user']}.")],
        strategy=ChainOfThought(),
        perspective=Critic(),
        input_keys=["_iteration"],
        preprocessor=context_enricher(include_timestamp=False),
    )
    model = ScriptedModel(["done"])
    engine = PromptGraphEngine(PromptGraph(nodes=[step]), model, instructions="House rules.", hooks=[])

    view = await inspect_prompt("say", "Hello?", engine=engine, context={"user": "Ann"})
    assert model.requests == []
    await engine.ainvoke("Hello?", context={"user": "Ann"})

    sent = model.requests[0]
    shown = [(message.type, message.content) for message in view.messages]
    expected = [(message.type, message.content) for message in sent.messages]
    # Outside of a run nothing has been visited yet.
    expected[0] = ("system", expected[0][1].replace("_iteration: 1", "_iteration: 0"))
    assert shown == expected
    assert view.tools == ("look",)


async def test_the_text_for_people_names_the_node_the_model_the_tools_and_every_message() -> None:
    view = await inspect_prompt(say(tools=[look]), "Hello?", model=ScriptedModel([], name="small"))

    assert str(view) == (
        "node 'say' -> model 'small'\ntools: look (choice: auto)\n\n[system]\nAnswer.\n\n[human]\nHello?"
    )
    assert view.system == "Answer."


async def test_a_state_is_read_and_not_changed() -> None:
    state = GraphState(messages=["Hello?"], context={"topic": "fruit"}, plan=["find one"])

    view = await inspect_prompt(say(input_keys=["topic"]), state, model=ScriptedModel([]))

    assert view.system == "Answer.\n\nInput data:\ntopic: fruit\n\nPlan:\n\u2192 find one"
    assert (len(state.messages), state.context, state.visited) == (1, {"topic": "fruit"}, [])


async def test_an_override_and_a_schema_are_shown_and_the_node_keeps_its_model() -> None:
    native = ScriptedModel([], name="native", capabilities=ModelCapabilities(structured_output=True))
    step = say(model_override=native, output_schema=Fruit)

    view = await inspect_prompt(step, "Hello?", model=ScriptedModel([], name="other"))

    assert (view.model, view.output_schema) == ("native", "Fruit")
    assert step.model_override is native


async def test_a_failure_before_the_request_is_not_hidden() -> None:
    def broken(state: Any, config: Any) -> None:
        raise ValueError("no input")

    with pytest.raises(ValueError, match="no input"):
        await inspect_prompt(say(preprocessor=broken), "Hello?", model=ScriptedModel([]))


async def test_what_has_no_prompt_is_refused() -> None:
    @node("plain")
    async def plain() -> str:
        return "x"

    with pytest.raises(ConfigurationError, match="makes no model request"):
        await inspect_prompt(plain, "Hello?", model=ScriptedModel([]))
    with pytest.raises(ConfigurationError, match="has no model"):
        await inspect_prompt(say(), "Hello?")
    with pytest.raises(ConfigurationError, match="give engine="):
        await inspect_prompt("say", "Hello?")
    engine = PromptGraphEngine(PromptGraph(nodes=[say()]), ScriptedModel([]))
    with pytest.raises(ConfigurationError, match="leave yours out"):
        await inspect_prompt("say", "Hello?", engine=engine, model=ScriptedModel([]))
