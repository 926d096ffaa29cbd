from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from langchain_core.tools import InjectedToolArg
from langchain_core.tools import tool as langchain_tool

from graphwright.tools import ToolHooks, ToolRun, answer_calls, as_tools
from graphwright.types import ToolCall, ToolResult

ran: list[dict[str, Any]] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


def pay(amount: int, to: str = "bob") -> str:
    """Pay somebody."""
    ran.append({"amount": amount, "to": to})
    return f"paid {amount} to {to}, secret 1234"


async def answer(calls: list[ToolCall], hooks: ToolHooks, tools: Any = (pay,), **run: Any) -> list[ToolResult]:
    return await answer_calls(calls, as_tools(tools), ToolRun(hooks=hooks, **run))


async def test_a_hook_sees_the_validated_arguments_and_may_change_them() -> None:
    seen: list[Any] = []

    async def before(name: str, args: dict[str, Any]) -> dict[str, Any]:
        seen.append((name, dict(args)))
        return {**args, "amount": "7"}

    result = (await answer([ToolCall("c1", "pay", {"amount": "3", "to": None})], ToolHooks(before=before)))[0]

    assert seen == [("pay", {"amount": 3})]
    assert ran == [{"amount": 7, "to": "bob"}]
    assert result.args == {"amount": 7}
    assert result.call.args == {"amount": "3", "to": None}


@pytest.mark.parametrize("change_in_place", [True, False])
async def test_a_hook_that_returns_nothing_changes_nothing(change_in_place: bool) -> None:
    async def before(name: str, args: dict[str, Any]) -> None:
        if change_in_place:
            args["amount"] = 1_000_000

    async def after(name: str, content: Any, args: dict[str, Any]) -> None:
        return None

    result = (await answer([ToolCall("c1", "pay", {"amount": 3})], ToolHooks(before, after)))[0]

    assert ran == [{"amount": 3, "to": "bob"}]
    assert result.message.content == "paid 3 to bob, secret 1234"


async def test_a_hook_that_changes_the_arguments_in_place_and_returns_them_is_heard() -> None:
    async def before(name: str, args: dict[str, Any]) -> dict[str, Any]:
        args["amount"] = 5
        return args

    await answer([ToolCall("c1", "pay", {"amount": 3})], ToolHooks(before))

    assert ran == [{"amount": 5, "to": "bob"}]


async def test_changed_arguments_that_do_not_fit_stop_the_call() -> None:
    async def before(name: str, args: dict[str, Any]) -> dict[str, Any]:
        return {"amount": "much"}

    result = (await answer([ToolCall("c1", "pay", {"amount": 3})], ToolHooks(before)))[0]

    assert ran == []
    assert str(result.message.content).startswith("a hook changed this call, and so the arguments of 'pay' do not fit")
    assert "- amount: should be a valid integer" in str(result.message.content)


async def test_a_hook_that_returns_something_else_stops_the_call() -> None:
    async def before(name: str, args: dict[str, Any]) -> Any:
        return "yes"

    result = (await answer([ToolCall("c1", "pay", {"amount": 3})], ToolHooks(before)))[0]

    assert ran == []
    assert result.message.content == "a hook returned 'yes' in place of the arguments, so the call did not run"


async def test_a_veto_answers_the_call_with_its_words_and_its_sibling_runs() -> None:
    after_calls: list[str] = []

    async def before(name: str, args: dict[str, Any]) -> None:
        if args["amount"] > 100:
            raise PermissionError("more than 100 needs a person")
        if args["amount"] == 0:
            raise ValueError

    async def after(name: str, content: Any, args: dict[str, Any]) -> None:
        after_calls.append(content)

    calls = [ToolCall(f"c{amount}", "pay", {"amount": amount}) for amount in (500, 5, 0)]
    results = await answer(calls, ToolHooks(before, after))

    assert [(result.message.content, result.success, result.raised) for result in results] == [
        ("more than 100 needs a person", False, True),
        ("paid 5 to bob, secret 1234", True, False),
        ("ValueError", False, True),
    ]
    assert ran == [{"amount": 5, "to": "bob"}]
    assert after_calls == ["paid 5 to bob, secret 1234"]


async def test_the_hooks_of_the_whole_batch_are_asked_in_order_before_any_call_runs() -> None:
    log: list[str] = []

    async def before(name: str, args: dict[str, Any]) -> None:
        log.append(f"ask {args['amount']} after {len(ran)}")

    await answer([ToolCall("c1", "pay", {"amount": 1}), ToolCall("c2", "pay", {"amount": 2})], ToolHooks(before))

    assert log == ["ask 1 after 0", "ask 2 after 0"]
    assert len(ran) == 2


async def test_no_hook_sees_a_call_that_the_gate_refused() -> None:
    seen: list[str] = []

    async def before(name: str, args: dict[str, Any]) -> None:
        seen.append(name)

    async def after(name: str, content: Any, args: dict[str, Any]) -> None:
        seen.append(name)

    calls = [
        ToolCall("c1", "pai", {}),
        ToolCall("c2", "pay", {}, problem="cut off", raw="{"),
        ToolCall("c3", "pay", {"amount": "much"}),
    ]
    results = await answer(calls, ToolHooks(before, after))

    assert [result.success for result in results] == [False, False, False]
    assert seen == []


async def test_what_the_later_hook_takes_out_is_nowhere_left() -> None:
    seen: list[Any] = []
    traced: list[ToolResult] = []

    async def after(name: str, content: Any, args: dict[str, Any]) -> Any:
        seen.append((name, content, args))
        return content.replace("1234", "****")

    result = (await answer([ToolCall("c1", "pay", {"amount": 3})], ToolHooks(after=after), trace=traced.append))[0]

    assert seen == [("pay", "paid 3 to bob, secret 1234", {"amount": 3})]
    assert result.message.content == "paid 3 to bob, secret ****"
    assert "1234" not in repr(result)
    assert "1234" not in repr(result.record())
    assert traced == [result]


async def test_the_later_hook_may_return_anything_and_sees_errors_too() -> None:
    def fail() -> None:
        """Fail."""
        raise ValueError("with secret 1234")

    async def after(name: str, content: Any, args: dict[str, Any]) -> Any:
        return {"masked": content.replace("1234", "****")}

    result = (await answer([ToolCall("c1", "fail", {})], ToolHooks(after=after), [fail]))[0]

    assert result.message.content == '{"masked": "ValueError: with secret ****"}'
    assert (result.message.status, result.success) == ("error", False)


async def test_a_cut_comes_after_the_later_hook_so_that_it_sees_everything() -> None:
    async def after(name: str, content: Any, args: dict[str, Any]) -> Any:
        return content.replace("secret 1234", "[removed]")

    hooks = ToolHooks(after=after)
    result = (await answer([ToolCall("c1", "pay", {"amount": 3})], hooks, max_result_chars=25))[0]

    assert result.message.content == "paid 3 to bob, [removed]"


async def test_when_the_later_hook_fails_the_result_is_withheld() -> None:
    async def after(name: str, content: Any, args: dict[str, Any]) -> Any:
        raise RuntimeError(f"cannot mask {content}")

    result = (await answer([ToolCall("c1", "pay", {"amount": 3})], ToolHooks(after=after)))[0]

    assert result.message.content == "the result was withheld, because a check of it failed: RuntimeError"
    assert not result.success


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("count", [1, 2])
async def test_a_hook_cannot_swallow_the_cancellation_of_the_run(where: str, count: int) -> None:
    started = asyncio.Event()

    async def swallow(*args: Any) -> None:
        started.set()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return

    calls = [ToolCall(f"c{number}", "pay", {"amount": 1}) for number in range(count)]
    run = asyncio.create_task(answer(calls, ToolHooks(**{where: swallow})))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    if where == "before":
        assert ran == []


async def test_a_hook_that_is_cancelled_from_inside_refuses_the_call() -> None:
    async def before(name: str, args: dict[str, Any]) -> None:
        raise asyncio.CancelledError

    result = (await answer([ToolCall("c1", "pay", {"amount": 1})], ToolHooks(before)))[0]

    assert result.message.content == "a hook was cancelled from inside"
    assert {"amount": 1} not in [{"amount": call["amount"]} for call in ran]


async def test_a_hook_gives_what_no_model_may() -> None:
    @langchain_tool
    def report(text: str, user: Annotated[str, InjectedToolArg]) -> str:
        """Report."""
        return f"{user}: {text}"

    def note(text: str, user: Annotated[str, InjectedToolArg]) -> str:
        """Note."""
        return f"{user}: {text}"

    async def before(name: str, args: dict[str, Any]) -> dict[str, Any]:
        return {**args, "user": "ann"}

    tools = [report, note]
    calls = [ToolCall("c1", "report", {"text": "x"}), ToolCall("c2", "note", {"text": "y"})]
    forged = [ToolCall(call.id, call.name, {**call.args, "user": "root"}) for call in calls]

    assert [result.message.content for result in await answer(calls, ToolHooks(before), tools)] == ["ann: x", "ann: y"]
    assert [result.success for result in await answer(calls, ToolHooks(), tools)] == [False, False]
    assert [result.success for result in await answer(forged, ToolHooks(), tools)] == [False, False]
    unchecked = await answer(forged, ToolHooks(before), tools, validate=False)
    assert [result.message.content for result in unchecked] == ["ann: x", "ann: y"]
