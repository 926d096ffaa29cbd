from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphwright.exceptions import ConfigurationError
from graphwright.orchestrator.guards import (
    BudgetGuard,
    ChainVerdict,
    GuardContext,
    GuardDecision,
    as_guards,
    evaluate_guard_chain,
    evaluate_io_guards,
    guard_name_of,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
ARGS = st.dictionaries(st.text(max_size=5), JSON, max_size=4)


def context(**args: Any) -> GuardContext:
    return GuardContext(tool_name="write", args=args, tool_call_id="call_1")


def allow(context: GuardContext) -> GuardDecision:
    return GuardDecision.allow()


def always(decision: Any) -> Any:
    def guard(subject: Any) -> Any:
        return decision

    return guard


def shown(verdict: ChainVerdict) -> list[tuple[str, str, str]]:
    return [(event["guard"], event["action"], event["reason"]) for event in verdict.events]


@pytest.mark.parametrize("action", ["", "ALLOW", "block", None, 1, ["allow"]])
def test_a_decision_with_an_unknown_action_is_refused(action: Any) -> None:
    with pytest.raises(ValueError, match="action is"):
        GuardDecision(action)


def test_a_rewrite_without_arguments_is_refused() -> None:
    with pytest.raises(ValueError, match="args_override is None"):
        GuardDecision("rewrite")
    with pytest.raises(ValueError, match="args_override is 'x'"):
        GuardDecision.rewrite("x")  # type: ignore[arg-type]


@pytest.mark.parametrize("action", ["allow", "deny", "ask"])
def test_arguments_with_another_action_than_rewrite_are_refused_and_not_dropped(action: Any) -> None:
    with pytest.raises(ValueError, match="only 'rewrite' changes arguments"):
        GuardDecision(action, args_override={"a": 1})


def test_a_decision_and_a_context_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        GuardDecision.allow().action = "deny"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        context().args = {}  # type: ignore[misc]


def test_the_helpers_make_the_four_decisions() -> None:
    assert GuardDecision.allow() == GuardDecision("allow")
    assert GuardDecision.deny("no") == GuardDecision("deny", "no")
    assert GuardDecision.ask("who?") == GuardDecision("ask", "who?")
    assert GuardDecision.rewrite({"a": 1}, "safer") == GuardDecision("rewrite", "safer", {"a": 1})


async def test_an_empty_chain_allows_with_the_arguments_of_the_call() -> None:
    verdict = await evaluate_guard_chain([], context(a=1))

    assert verdict == ChainVerdict("allow", {"a": 1})


async def test_guards_are_asked_in_order_until_one_objects() -> None:
    asked: list[str] = []

    def first(context: GuardContext) -> GuardDecision:
        asked.append("first")
        return GuardDecision.allow()

    async def second(context: GuardContext) -> GuardDecision:
        await asyncio.sleep(0)
        asked.append("second")
        return GuardDecision.deny("not today")

    def third(context: GuardContext) -> GuardDecision:
        asked.append("third")
        return GuardDecision.allow()

    verdict = await evaluate_guard_chain([first, second, third], context(a=1))

    assert asked == ["first", "second"]
    assert (verdict.action, verdict.guard_name, verdict.reason) == ("deny", "second", "not today")
    assert shown(verdict) == [("second", "deny", "not today")]
    event = verdict.events[0]
    assert set(event) == {"type", "guard", "tool_name", "tool_call_id", "action", "reason", "ts"}
    assert (event["type"], event["tool_name"], event["tool_call_id"]) == ("guard_decision", "write", "call_1")


async def test_a_later_guard_sees_what_an_earlier_one_rewrote() -> None:
    seen: list[dict[str, Any]] = []

    def look(context: GuardContext) -> GuardDecision:
        seen.append(context.args)
        return GuardDecision.allow()

    verdict = await evaluate_guard_chain([always(GuardDecision.rewrite({"path": "/safe"})), look], context(path="/"))

    assert seen == [{"path": "/safe"}]
    assert (verdict.action, verdict.args, verdict.rewritten) == ("allow", {"path": "/safe"}, True)
    assert shown(verdict) == [("guard", "rewrite", "")]


@given(original=ARGS, rewritten=ARGS, between=st.lists(st.sampled_from(["allow", "rewrite"]), max_size=3))
def test_rewritten_arguments_survive_a_later_ask(
    original: dict[str, Any], rewritten: dict[str, Any], between: list[str]
) -> None:
    guards = [always(GuardDecision.rewrite({"first": 1}))]
    guards += [allow if word == "allow" else always(GuardDecision.rewrite({"n": [word]})) for word in between]
    guards += [always(GuardDecision.rewrite(rewritten)), allow, always(GuardDecision.ask("sure?"))]

    verdict = asyncio.run(evaluate_guard_chain(guards, GuardContext("t", original)))

    assert (verdict.action, verdict.args, verdict.rewritten, verdict.reason) == ("ask", rewritten, True, "sure?")


def _ruin(value: Any) -> None:
    if isinstance(value, dict):
        for entry in value.values():
            _ruin(entry)
        value["ruined"] = True
    elif isinstance(value, list):
        for entry in value:
            _ruin(entry)
        value.append("ruined")


@given(args=ARGS)
def test_a_mutation_never_leaks_however_deep_it_is(args: dict[str, Any]) -> None:
    before = copy.deepcopy(args)
    seen: list[dict[str, Any]] = []
    given_out = copy.deepcopy(args)

    def ruin(context: GuardContext) -> GuardDecision:
        _ruin(context.args)
        context.tool_counts["ruined"] = 1  # type: ignore[index]
        return GuardDecision.allow()

    def rewrite(context: GuardContext) -> GuardDecision:
        return GuardDecision.rewrite(given_out)

    def ruin_what_was_given_out(context: GuardContext) -> GuardDecision:
        _ruin(given_out)
        return GuardDecision.allow()

    def look(context: GuardContext) -> GuardDecision:
        seen.append(copy.deepcopy(context.args))
        assert context.tool_counts == {"a": 1}
        return GuardDecision.allow()

    counts = {"a": 1}
    asked = GuardContext("t", args, tool_counts=counts)
    verdict = asyncio.run(evaluate_guard_chain([ruin, look, rewrite, ruin_what_was_given_out, look, ruin], asked))

    assert args == before
    assert counts == {"a": 1}
    assert seen == [before, before]
    assert (verdict.action, verdict.args) == ("allow", before)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(None, "NoneType"), (True, "bool"), ({"action": "allow"}, "dict"), ("allow", "str"), (GuardDecision, "type")],
)
async def test_whatever_is_no_decision_denies_and_its_class_is_named(answer: Any, kind: str) -> None:
    verdict = await evaluate_guard_chain([always(answer), allow], context())

    assert verdict.action == "deny"
    assert verdict.guard_name == "guard"
    assert verdict.reason == f"the guard answered with {kind}, which is no GuardDecision"
    assert shown(verdict) == [("guard", "deny", verdict.reason)]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_guard_that_raises_denies_and_the_error_text_stays_in_the_log(
    is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(context: GuardContext) -> GuardDecision:
        raise KeyError("secret-detail")

    async def broken_later(context: GuardContext) -> GuardDecision:
        raise KeyError("secret-detail")

    verdict = await evaluate_guard_chain([broken_later if is_async else broken], context())

    assert (verdict.action, verdict.reason) == ("deny", "the guard failed: KeyError")
    assert "secret-detail" in caplog.text


async def test_a_signal_that_is_no_exception_passes_through() -> None:
    class Signal(BaseException):
        pass

    def stop(context: GuardContext) -> GuardDecision:
        raise Signal

    with pytest.raises(Signal):
        await evaluate_guard_chain([stop], context())


async def test_arguments_that_cannot_be_copied_are_denied_before_any_guard_is_asked() -> None:
    class Sealed:
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("no copies")

    asked: list[Any] = []
    verdict = await evaluate_guard_chain([asked.append], context(a=Sealed()))

    assert (verdict.action, asked) == ("deny", [])
    assert "cannot be shown to the guard: TypeError" in verdict.reason
    denied = await evaluate_guard_chain([always(GuardDecision.rewrite({"a": Sealed()}))], context())
    assert denied.action == "deny"
    assert "arguments that cannot be used: TypeError" in denied.reason
    assert not denied.rewritten


async def test_a_guard_is_reported_by_its_name_then_its_function_then_its_class() -> None:
    class Named:
        name = "the policy"

        def __call__(self, context: GuardContext) -> GuardDecision:
            return GuardDecision.deny("no")

    assert guard_name_of(Named()) == "the policy"
    assert guard_name_of(allow) == "allow"
    assert guard_name_of(BudgetGuard(1)) == "BudgetGuard"
    verdict = await evaluate_guard_chain([Named()], context())
    assert verdict.guard_name == "the policy"
    signed = await evaluate_guard_chain([always(GuardDecision("deny", "no", guard_name="desk 4"))], context())
    assert signed.guard_name == signed.events[0]["guard"] == "desk 4"


async def test_a_text_is_rejected_by_whatever_is_not_allow() -> None:
    for decision in (GuardDecision.deny("bad"), GuardDecision.ask("bad"), GuardDecision.rewrite({}, "bad")):
        verdict = await evaluate_io_guards([allow, always(decision), allow], "hello", stage="input")
        assert (verdict.allowed, verdict.guard, verdict.reason, verdict.failed) == (False, "guard", "bad", False)
        assert [(event["action"], event["stage"]) for event in verdict.events] == [(decision.action, "input")]


async def test_a_text_guard_that_cannot_judge_rejects_and_says_that_it_failed() -> None:
    async def broken(text: str) -> GuardDecision:
        raise RuntimeError("down")

    crashed = await evaluate_io_guards([broken], "hello", stage="output")
    mute = await evaluate_io_guards([always(None)], "hello", stage="output")

    assert (crashed.allowed, crashed.failed, crashed.reason) == (False, True, "the guard failed: RuntimeError")
    assert (mute.allowed, mute.failed) == (False, True)
    assert crashed.events[0]["stage"] == "output"


async def test_a_text_that_every_guard_allows_leaves_no_event() -> None:
    verdict = await evaluate_io_guards([allow, allow], "hello", stage="input")

    assert (verdict.allowed, verdict.guard, verdict.events, verdict.failed) == (True, "", [], False)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("x", "give a list"),
        ({"a": allow}, "give a list"),
        (allow, "give a list"),
        (3, "give a list"),
        ([allow, "x"], "can be called"),
        ([None], "can be called"),
        ([BudgetGuard], "give an object of it"),
        ([lambda: None], "cannot be called with one argument"),
        ([lambda a, b: None], "cannot be called with one argument"),
    ],
)
def test_guards_that_could_not_work_are_refused_when_the_bot_is_built(value: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as refused:
        as_guards(value, name="tool_guards")
    assert str(refused.value).startswith("tool_guards ")


def test_guards_come_back_as_a_tuple_in_order() -> None:
    budget = BudgetGuard(1)
    assert as_guards(None, name="tool_guards") == ()
    assert as_guards([allow, budget], name="tool_guards") == (allow, budget)
    assert as_guards((guard for guard in [budget]), name="tool_guards") == (budget,)
