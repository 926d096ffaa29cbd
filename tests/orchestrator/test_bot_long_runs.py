"""What a bot does besides calling tools: plan, verify, compact, remember skills, look at images, keep its prompt."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.orchestrator._bots import bot_of, events_of, read, results_in, shown_text, state_of, updates_of

from graphwright import OrchestratorBot, Skill
from graphwright.exceptions import ConfigurationError
from graphwright.messages import SystemMessage, text_of
from graphwright.testing import ScriptedModel, call, calls, calls_many, raises, says

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 16


async def act(n: int = 0) -> str:
    """Act."""
    return f"acted {n} " + "x" * 100


def is_summary_request(messages: list[Any]) -> bool:
    return "Summarize the conversation" in text_of(messages[0])


def is_review(messages: list[Any]) -> bool:
    return "review whether" in text_of(messages[0])


# Compaction


def rounds(*sizes: int) -> Any:
    """Answer with rounds of so many calls, then an end; a request for a summary gets one."""

    turns = iter(sizes)

    def answer(messages: list[Any]) -> Any:
        if is_summary_request(messages):
            kept = " code=7431" if "code=7431" in text_of(messages[-1]) else ""
            return says(f"SUM{kept}")
        size = next(turns, 0)
        return calls_many(*(call("act", n=n) for n in range(size))) if size else says("the end")

    return answer


@pytest.mark.parametrize("keep", range(1, 9))
async def test_compaction_keeps_rounds_whole_and_the_goal(keep: int) -> None:
    model = ScriptedModel.answering(rounds(1, 2, 5, 1, 2))
    bot = bot_of(model, [act], enable_compaction=True, compaction_threshold_tokens=100, compaction_keep_messages=keep)

    items = await read(bot.astream_events("find it, code=7431", mode="auto", thread_id="t"))

    kinds = [event["type"] for update in updates_of(items, "agent") for event in update.get("status_events", [])]
    assert "compacted" in kinds
    summarized = False
    for messages in model.inputs:
        if is_summary_request(messages):
            summarized = True
            continue
        told = text_of(messages[0])
        assert told.count("SUM") == int(summarized)
        assert [text_of(message) for message in messages if message.type == "human"] == ["find it, code=7431"]
    assert updates_of(items, "agent")[-1]["final_report"] == "the end"
    assert "SUM" not in shown_text(items)
    state_of(bot, "t")


async def test_the_summary_is_in_every_request_after_it_and_survives_the_next_goal() -> None:
    """2.54, 2.63: what was summarized is never forgotten, and its tokens count."""
    model = ScriptedModel.answering(rounds(1, 1, 1, 1, 1, 1, 1, 1))
    bot = bot_of(model, [act], enable_compaction=True, compaction_threshold_tokens=150, compaction_keep_messages=2)
    history = [{"role": "user", "content": "code=7431"}, {"role": "assistant", "content": "noted"}]

    first = await bot.arun("go on", thread_id="t", history=history)
    await bot.arun("what was the code?", thread_id="t")

    for messages in model.inputs:
        text = " ".join(text_of(message) for message in messages)
        assert text.count("code=7431") == 1
    assert "SUM code=7431" in text_of(model.inputs[-1][0])
    summaries = sum(is_summary_request(messages) for messages in model.inputs)
    assert first.token_usage["total_tokens"] == 15 * (len(model.inputs) - 1)
    assert summaries >= 1


async def test_without_a_summary_everything_stays() -> None:
    def answer(messages: list[Any]) -> Any:
        if is_summary_request(messages):
            return raises(ValueError("down"))
        return says("the end") if len(messages) > 6 else calls("act")

    model = ScriptedModel.answering(answer)
    bot = bot_of(model, [act], enable_compaction=True, compaction_threshold_tokens=10, compaction_keep_messages=2)

    result = await bot.arun("go")

    assert result.content == "the end"
    assert len(model.inputs[-1]) > 6


# Verification


def reviewed(*verdicts: Any, tools: bool = False) -> Any:
    waiting = list(verdicts)

    def answer(messages: list[Any]) -> Any:
        if is_review(messages):
            return waiting.pop(0)
        if tools and messages[-1].type == "human" and not any(message.type == "tool" for message in messages):
            return calls("act", n=7)
        return says("second report" if any("reviewer" in text_of(message) for message in messages) else "first report")

    return answer


async def test_a_report_that_is_rejected_is_written_again_and_reviewed_again() -> None:
    """2.51: the reviewer sees what the tools did, its text is not shown, its tokens count."""
    model = ScriptedModel.answering(
        reviewed(says('{"approved": false, "feedback": "no figures"}'), says('{"approved": true}'), tools=True)
    )
    bot = bot_of(model, [act], enable_verification=True)

    items = await read(bot.astream_events("go", mode="auto", thread_id="t"))

    assert [event["node"] for event in events_of(items, "node_invoked")] == [
        "agent",
        "tools",
        "agent",
        "verify",
        "agent",
        "verify",
    ]
    assert [(update["verify_rounds"], update["verify_passed"]) for update in updates_of(items, "verify")] == [
        (1, False),
        (2, True),
    ]
    assert shown_text(items) == "first reportsecond report"
    reviews = [messages for messages in model.inputs if is_review(messages)]
    assert "acted 7" in text_of(reviews[0][1])
    assert "<goal>" in text_of(reviews[0][1])
    assert "no figures" in text_of(updates_of(items, "verify")[0]["messages"][0])
    used = sum(
        update.get("token_usage", {}).get("total_tokens", 0)
        for mode, payload in items
        if mode == "updates"
        for update in payload.values()
    )
    assert used == 15 * len(model.inputs)
    assert state_of(bot, "t")["final_report"] == "second report"


@pytest.mark.parametrize(
    ("verdict", "on_error", "success"),
    [
        (says('{"approved": true}'), "reject", True),
        (says("APPROVED"), "reject", True),
        (says("APPROVED? no, it is wrong"), "reject", False),
        (says("APPROVED? no, it is wrong"), "accept", True),
        (says('{"approved": "true"}'), "reject", False),
        (says('{"approved": false}'), "accept", False),
        (raises(ValueError("down")), "reject", False),
        (raises(ValueError("down")), "accept", True),
    ],
)
async def test_only_a_clear_yes_is_a_yes(verdict: Any, on_error: str, success: bool) -> None:
    """2.51: what cannot be read follows the option, and two rejections are no success."""
    model = ScriptedModel.answering(reviewed(verdict, verdict))
    result = await bot_of(model, enable_verification=True, verification_on_error=on_error).arun("go")

    assert result.success is success
    assert result.status == "completed"


# Plans


@pytest.mark.parametrize(
    "bad",
    [
        call("set_plan", steps="abc"),
        call("set_plan", steps=[]),
        call("set_plan"),
        call("set_plan", steps=[1, 2]),
        call("update_step", step=9, status="done"),
        call("update_step", step="1", status="done"),
        call("update_step", step=1, status="finished"),
    ],
)
async def test_a_plan_call_that_does_not_fit_changes_nothing_and_says_so(bad: Any) -> None:
    """2.39, 2.40."""
    model = ScriptedModel([calls("set_plan", steps=["one"]), calls_many(bad), says("ok")])
    bot = bot_of(model, enable_planning=True)

    items = await read(bot.astream_events("go", mode="auto"))

    refused = results_in(model.inputs[2])[1]
    assert refused[2] == "error"
    assert "Traceback" not in refused[1]
    second = updates_of(items, "plan")[1]
    assert second["plan"] == [{"step": 1, "description": "one", "status": "pending"}]
    assert "step_events" not in second


async def test_a_plan_call_where_planning_is_off_is_an_unknown_tool() -> None:
    """2.41: it is answered all the same."""
    model = ScriptedModel([calls("set_plan", steps=["a"]), says("ok")])

    result = await bot_of(model).arun("go")

    assert results_in(model.inputs[1])[0][2] == "error"
    assert result.plan == []


async def test_the_plan_is_in_the_prompt_behind_what_a_provider_caches() -> None:
    model = ChatAnthropic(
        [calls("set_plan", steps=["peel", "chop"]), calls("update_step", step=1, status="done"), says("ok")]
    )
    bot = OrchestratorBot(model, None, "Be brief.", enable_planning=True)

    await bot.arun("go", context="today is Monday")

    blocks = [messages[0].content for messages in model.inputs]
    assert all(content[0]["cache_control"] == {"type": "ephemeral"} for content in blocks)
    assert len({json.dumps(content[0]) for content in blocks}) == 1
    assert "Be brief." in blocks[0][0]["text"]
    assert "peel" not in blocks[1][0]["text"]
    assert "peel" in blocks[1][1]["text"]
    assert "today is Monday" in blocks[0][1]["text"]


class ChatAnthropic(ScriptedModel):
    """Bears the name by which a model of that provider is known."""


@pytest.mark.parametrize(("model", "on"), [(ScriptedModel, True), (ChatAnthropic, False)])
async def test_without_that_provider_or_that_flag_the_prompt_is_plain_text(model: Any, on: bool) -> None:
    made = model([says("x")])
    await OrchestratorBot(made, None, "Be brief.", enable_prompt_cache=on).arun("go")

    assert isinstance(made.inputs[0][0].content, str)


# What comes with the goal


async def test_context_and_system_messages_of_the_history_are_in_the_one_system_message() -> None:
    """2.74: no provider is sent a system message behind the first."""
    model = ScriptedModel([says("x"), says("y")])
    bot = bot_of(model)
    history = [SystemMessage("be exact"), {"role": "user", "content": "one"}, {"role": "bot", "content": "two"}]

    await bot.arun("three", context="it is Monday", history=history, thread_id="t")
    await bot.arun("four", context="it is Tuesday", thread_id="t")

    for messages in model.inputs:
        assert [message.type for message in messages].count("system") == 1
        assert messages[0].type == "system"
    assert [text_of(message) for message in model.inputs[0][1:]] == ["one", "two", "three"]
    assert "it is Monday" in text_of(model.inputs[0][0])
    assert "be exact" in text_of(model.inputs[0][0])
    assert "it is Tuesday" in text_of(model.inputs[1][0])
    assert "Monday" not in text_of(model.inputs[1][0])


@pytest.mark.parametrize("history", ["text", [7], [{"role": "user"}], {"role": "user", "content": "x"}])
async def test_a_history_that_is_none_is_refused(history: Any) -> None:
    with pytest.raises(ConfigurationError, match="history"):
        await bot_of([]).arun("go", history=history)


@pytest.mark.parametrize("goal", ["lone \udcff surrogate", "مرحبا", "🙂" * 10])
async def test_text_of_any_kind_is_taken(goal: str, tmp_path: Path) -> None:
    """2.69."""
    assert (await bot_of([says("ok")]).arun(goal)).content == "ok"


async def test_an_image_goes_to_the_vision_model_with_the_tools_and_later_turns_do_not() -> None:
    """2.68: one image does not take the tools away for ever."""
    strong = ScriptedModel([says("later"), says("even later")])
    vision = ScriptedModel([calls("act", n=1), says("a cat")])
    bot = OrchestratorBot(strong, None, "x", [act], vision_model=vision)

    first = await bot.arun("what is this?", thread_id="t", images=[PNG])
    second = await bot.arun("and now?", thread_id="t")

    assert (first.content, second.content) == ("a cat", "later")
    assert vision.tools_seen == [["act"], ["act"]]
    assert strong.tools_seen == [["act"]]
    sent = vision.inputs[0][-1].content
    assert sent[0] == {"type": "text", "text": "what is this?"}
    assert base64.b64decode(sent[1]["image_url"]["url"].partition("base64,")[2]) == PNG


async def test_a_model_that_cannot_see_is_not_sent_the_images_of_earlier_turns() -> None:
    strong = ScriptedModel([says("later")])
    vision = ScriptedModel([says("a cat")])
    bot = OrchestratorBot(strong, None, "x", vision_model=vision)
    await bot.arun("what is this?", thread_id="t", images=[{"url": "https://example.org/cat.png"}])

    await bot.arun("and now?", thread_id="t")

    assert "image_url" not in str([message.content for message in strong.inputs[0]])
    assert "what is this?" in text_of(strong.inputs[0][1])
    kept = state_of(bot, "t")["messages"][0]
    assert kept.content[1]["type"] == "image_url"


async def test_without_a_vision_model_the_strong_one_sees_every_image() -> None:
    strong = ScriptedModel([says("a cat"), says("still")])
    bot = OrchestratorBot(strong, None, "x")
    await bot.arun("what is this?", thread_id="t", images=[PNG])
    await bot.arun("sure?", thread_id="t")

    assert "image_url" in str(strong.inputs[1][1].content)


@pytest.mark.parametrize("image", ["no such file", 7, {"x": 1}, ""])
async def test_an_image_that_cannot_be_read_is_refused(image: Any) -> None:
    with pytest.raises(ConfigurationError, match="image"):
        await bot_of([]).arun("go", images=[image])


# Skills


def skill(ran: list[str]) -> Skill:
    async def invoice(n: int) -> str:
        """Write an invoice."""
        ran.append(f"invoice {n}")
        return "written"

    return Skill(name="billing", instructions="Always round up.", description="Invoices.", tools=[invoice])


async def test_the_tools_of_a_lazy_skill_are_there_once_it_is_loaded() -> None:
    ran: list[str] = []
    model = ScriptedModel([calls("load_skill", name="billing"), calls("invoice", n=1), says("done")])
    bot = bot_of(model, [act], skills=[skill(ran)])

    result = await bot.arun("bill", mode="ask", thread_id="t")

    assert result.status == "paused"
    assert result.pending_approval is not None
    assert result.pending_approval["tool"] == "invoice"
    assert model.tools_seen == [["act", "load_skill"], ["act", "load_skill", "invoice"]]
    assert "billing" in text_of(model.inputs[0][0])
    assert "Always round up." not in text_of(model.inputs[0][0])
    assert "Always round up." in results_in(model.inputs[1])[0][1]
    assert (await bot.aresume("t", True)).content == "done"
    assert ran == ["invoice 1"]


async def test_a_tool_of_a_skill_that_was_not_loaded_does_not_run() -> None:
    ran: list[str] = []
    model = ScriptedModel([calls("invoice", n=1), calls("load_skill", name="nope"), says("done")])

    result = await bot_of(model, skills=[skill(ran)]).arun("bill")

    assert ran == []
    assert [record["status"] for record in result.tools_executed] == ["error", "error"]
    assert "billing" in results_in(model.inputs[2])[1][1]


async def test_an_eager_skill_is_in_the_prompt_with_its_tools() -> None:
    ran: list[str] = []
    model = ScriptedModel([calls("invoice", n=1), says("done")])

    await bot_of(model, skills=[skill(ran)], skills_eager=True).arun("bill")

    assert model.tools_seen[0] == ["invoice"]
    assert "Always round up." in text_of(model.inputs[0][0])
    assert ran


async def test_the_prompt_before_the_newest_messages_never_changes_within_a_run() -> None:
    model = ScriptedModel([calls("act", n=1), calls("act", n=2), says("x")])
    await bot_of(model, [act]).arun("go")

    for earlier, later in zip(model.inputs, model.inputs[1:], strict=False):
        assert [repr(message) for message in later[: len(earlier)]] == [repr(message) for message in earlier]


async def test_a_memory_that_changes_meanwhile_does_not_change_the_prompt_of_the_run(tmp_path: Path) -> None:
    """Read once a run, and again only when the file has changed."""
    file = tmp_path / "MEMORY.md"
    file.write_text("likes tea")

    async def change() -> str:
        """Change."""
        file.write_text("likes coffee now")
        return "x"

    model = ScriptedModel([calls("change"), says("x"), says("y")])
    bot = bot_of(model, [change], memory_path=str(tmp_path))
    await bot.arun("go")
    await bot.arun("go")

    assert ["likes tea" in text_of(messages[0]) for messages in model.inputs] == [True, True, False]
    assert "likes coffee now" in text_of(model.inputs[2][0])
