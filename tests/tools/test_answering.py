from __future__ import annotations

import asyncio
from typing import Any

import pytest

from graphwright.exceptions import ToolArgumentError, ToolError
from graphwright.run_events import RunEvent, ToolFinished, ToolStarted
from graphwright.tools import Tool, ToolRun, ToolSet, answer_calls, as_tools, tool
from graphwright.types import ToolCall, ToolResult, ToolSpec

_TRACE_WORDS = ("Traceback", 'File "', ".py")


async def answer(functions: list[Any], *calls: ToolCall, **run: Any) -> list[ToolResult]:
    return await answer_calls(calls, as_tools(functions), ToolRun(**run))


def get_date(zone: str = "UTC") -> str:
    """Tell the date."""
    return f"2024-02-29 {zone}"


async def test_results_come_in_the_order_asked_while_the_calls_run_at_once() -> None:
    log: list[str] = []
    b_done, c_done = asyncio.Event(), asyncio.Event()

    async def a() -> str:
        log.append("a starts")
        await c_done.wait()
        return "A"

    async def b() -> str:
        log.append("b starts")
        b_done.set()
        return "B"

    async def c() -> str:
        log.append("c starts")
        await b_done.wait()
        c_done.set()
        return "C"

    for _ in range(20):
        log.clear()
        b_done.clear()
        c_done.clear()
        results = await answer([a, b, c], ToolCall("c1", "a", {}), ToolCall("c2", "b", {}), ToolCall("c3", "c", {}))

        assert [(result.message.tool_call_id, result.message.content) for result in results] == [
            ("c1", "A"),
            ("c2", "B"),
            ("c3", "C"),
        ]
        assert log == ["a starts", "b starts", "c starts"]


async def test_one_failing_call_of_three_leaves_the_others_alone_and_every_start_has_its_end() -> None:
    failed = asyncio.Event()

    async def a() -> str:
        await failed.wait()
        return "A"

    async def b() -> str:
        failed.set()
        raise ValueError("bad id")

    def c() -> str:
        return "C"

    events: list[RunEvent] = []
    calls = [ToolCall("c1", "a", {}), ToolCall("c2", "b", {}), ToolCall("c3", "c", {})]

    async def emit(event: RunEvent) -> None:
        events.append(event)

    traced: list[ToolResult] = []
    results = await answer([a, b, c], *calls, emit=emit, trace=traced.append, node="n", run_id="r", path="outer")

    assert [(result.message.content, result.message.status) for result in results] == [
        ("A", "success"),
        ("ValueError: bad id", "error"),
        ("C", "success"),
    ]
    assert [result.raised for result in results] == [False, True, False]
    starts = [event for event in events if isinstance(event, ToolStarted)]
    ends = [event for event in events if isinstance(event, ToolFinished)]
    assert [(event.call.id, event.index, event.node, event.run_id, event.path) for event in starts] == [
        ("c1", 0, "n", "r", "outer"),
        ("c2", 1, "n", "r", "outer"),
        ("c3", 2, "n", "r", "outer"),
    ]
    assert sorted((event.call.id, event.index) for event in ends) == [("c1", 0), ("c2", 1), ("c3", 2)]
    assert all(event.result is results[event.index] for event in ends)
    assert sorted(result.call.id for result in traced) == ["c1", "c2", "c3"]
    assert traced[-1] is not results[1]


async def test_an_unknown_name_is_answered_with_the_names_that_exist_and_its_sibling_runs() -> None:
    results = await answer([get_date], ToolCall("c1", "get_dat", {}), ToolCall("c2", "get_date", {"zone": "CET"}))

    assert results[0].message.status == "error"
    assert results[0].message.content == (
        "there is no tool named 'get_dat'; did you mean 'get_date'? The tools are: get_date"
    )
    assert (results[0].raised, results[0].message.name) == (False, "get_dat")
    assert results[1].message.content == "2024-02-29 CET"


async def test_of_many_known_names_twenty_are_listed_the_most_alike_first() -> None:
    many = [tool(get_date, name=f"tool_{number:02}") for number in range(30)]

    unlike, alike = await answer(many, ToolCall("c1", "zzz", {}), ToolCall("c2", "Tool_29", {}))

    names = ", ".join(f"tool_{number:02}" for number in range(20))
    assert unlike.message.content == f"there is no tool named 'zzz'. The tools are: {names} and 10 more"
    assert "did you mean 'tool_29'? The tools are: tool_29, " in str(alike.message.content)


async def test_without_any_tool_the_answer_says_so() -> None:
    result = (await answer([], ToolCall("c1", "x" * 5000, {})))[0]

    assert str(result.message.content).endswith("no tools can be called here")
    assert len(result.message.content) < 250


async def test_a_call_that_could_not_be_read_never_runs_and_is_told_why() -> None:
    ran: list[str] = []

    def rm(path: str = "/", force: bool = False) -> None:
        """Remove a path."""
        ran.append(path)

    def ok() -> str:
        ran.append("ok")
        return "fine"

    raw = '{"path": "/tmp"}{"path": "/"}' + "x" * 5000
    bad = ToolCall("c9", "rm", {}, problem="the arguments are no JSON: extra data", raw=raw)
    odd = ToolCall("c10", "rm", ["/"])  # type: ignore[arg-type]

    results = await answer([rm, ok], bad, odd, ToolCall("c11", "ok", {}))

    content = str(results[0].message.content)
    assert ran == ["ok"]
    assert [result.success for result in results] == [False, False, True]
    assert content.startswith("this call of 'rm' did not run: the arguments are no JSON: extra data. ")
    assert "its keys are path, force" in content
    assert content.endswith(raw[:1000] + "...")
    assert results[0].record() == {
        "name": "rm", "args": {}, "result": content, "success": False, "invalid": True, "raw_args": raw
    }  # fmt: skip
    assert "the arguments are ['/'], which is no JSON object" in str(results[1].message.content)


async def test_arguments_that_do_not_fit_are_listed_by_path_and_the_tool_does_not_run() -> None:
    ran: list[Any] = []

    def book(day: int, seats: list[int]) -> None:
        """Book seats."""
        ran.append(day)

    result = (await answer([book], ToolCall("c1", "book", {"seats": [1, "x"], "dy": 3})))[0]

    assert ran == []
    assert (result.success, result.raised, result.args) == (False, False, {"seats": [1, "x"], "dy": 3})
    assert result.message.content == (
        "the arguments of 'book' do not fit; correct them and call again:\n"
        "- day: is required\n"
        "- seats[1]: should be a valid integer, unable to parse string as an integer, not 'x'\n"
        "- dy: there is no such argument; did you mean 'day'?"
    )


async def test_without_validation_the_arguments_reach_the_tool_as_they_are() -> None:
    def f(n: int) -> str:
        return repr(n)

    given, wrong = await answer([f], ToolCall("c1", "f", {"n": "5"}), ToolCall("c2", "f", {"m": 5}), validate=False)

    assert given.message.content == "'5'"
    assert "TypeError" in str(wrong.message.content)
    assert "unexpected keyword argument 'm'" in str(wrong.message.content)


async def test_the_validated_arguments_are_reported() -> None:
    def f(n: int, m: int = 2) -> int:
        return n + m

    result = (await answer([f], ToolCall("c1", "f", {"n": "5", "m": None})))[0]

    assert (result.args, result.message.content) == ({"n": 5}, "7")
    assert result.record() == {"name": "f", "args": {"n": 5}, "result": "7", "success": True}
    assert result.duration_ms > 0


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def _pydantic_error() -> Exception:
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(int).validate_python("x")
    except ValidationError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    ("error", "content"),
    [
        (ValueError("bad id"), "ValueError: bad id"),
        (KeyError("name"), "KeyError: 'name'"),
        (RuntimeError(), "RuntimeError"),
        (ToolError("ask for the id first"), "ask for the id first"),
        (ToolError(), "the tool failed"),
        (StopIteration("early"), "RuntimeError: coroutine raised StopIteration"),
        (Odd(), "Odd: [a Odd that cannot be shown]"),
        (ValueError("x" * 3000), "ValueError: " + "x" * 1988 + "... [1,012 more characters]"),
        (
            ExceptionGroup("two", [ValueError("a"), ToolError("b")]),
            "ExceptionGroup: two (2 sub-exceptions): ValueError: a; b",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_raised_exception_is_told_by_type_and_message_alone(error: Exception, content: str) -> None:
    async def fail() -> None:
        raise error

    result = (await answer([fail], ToolCall("c1", "fail", {})))[0]

    assert (result.message.content, result.message.status, result.raised) == (content, "error", True)
    assert not any(word in content for word in _TRACE_WORDS)


async def test_a_pydantic_error_inside_a_tool_is_told_without_the_link() -> None:
    def fail() -> None:
        raise _pydantic_error()

    content = str((await answer([fail], ToolCall("c1", "fail", {})))[0].message.content)

    assert content.startswith("ValidationError: 1 validation error for int")
    assert "http" not in content


async def test_a_blocking_tool_that_raises_stop_iteration_is_answered() -> None:
    def fail() -> None:
        next(iter(()))

    assert (await answer([fail], ToolCall("c1", "fail", {})))[0].success is False


async def test_a_validator_of_the_author_that_breaks_is_answered_as_an_error() -> None:
    class Picky(Tool):
        spec = ToolSpec(name="picky")

        def validate(self, args: dict[str, Any]) -> dict[str, Any]:
            raise LookupError("no table")

    result = (await answer([Picky()], ToolCall("c1", "picky", {})))[0]

    assert result.message.content == "the arguments of 'picky' could not be checked: LookupError: no table"
    assert result.raised


async def test_a_tool_can_refuse_its_arguments_while_it_runs() -> None:
    def f() -> None:
        raise ToolArgumentError("f", ["day: is in the past"])

    result = (await answer([f], ToolCall("c1", "f", {})))[0]

    assert str(result.message.content).endswith("\n- day: is in the past")


async def test_the_whole_batch_passes_the_gate_before_any_call_runs() -> None:
    log: list[str] = []

    class Watched(Tool):
        def __init__(self, name: str) -> None:
            self.spec = ToolSpec(name=name)

        def validate(self, args: dict[str, Any]) -> dict[str, Any]:
            log.append(f"check {self.name}")
            return args

        async def run(self, args: dict[str, Any], call: ToolCall, config: dict[str, Any] | None) -> str:
            log.append(f"run {self.name}")
            return "done"

    await answer([Watched("a"), Watched("b")], ToolCall("c1", "a", {}), ToolCall("c2", "b", {}))

    assert log == ["check a", "check b", "run a", "run b"]


async def test_what_a_tool_does_to_its_arguments_does_not_reach_the_call() -> None:
    def f(things: Any) -> str:
        things["list"].append(2)
        things["new"] = 1
        return "changed"

    call = ToolCall("c1", "f", {"things": {"list": [1]}})
    for validate in (True, False):
        assert (await answer([f], call, validate=validate))[0].message.content == "changed"
        assert call.args == {"things": {"list": [1]}}


async def test_a_function_that_returns_an_awaitable_is_awaited() -> None:
    async def inner(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    def outer(n: int) -> Any:
        return inner(n)

    assert (await answer([outer], ToolCall("c1", "outer", {"n": 1})))[0].message.content == "2"


async def test_no_calls_are_no_results() -> None:
    assert await answer_calls([], ToolSet(), ToolRun()) == []


async def test_finished_results_are_handed_out_as_they_end_and_places_count_from_the_first() -> None:
    finished: list[ToolResult] = []
    indexes: list[int] = []
    first_may_end = asyncio.Event()

    async def slow() -> str:
        await first_may_end.wait()
        return "slow"

    async def quick() -> str:
        first_may_end.set()
        return "quick"

    async def emit(event: RunEvent) -> None:
        if isinstance(event, ToolStarted):
            indexes.append(event.index)

    results = await answer_calls(
        [ToolCall("c1", "slow", {}), ToolCall("c2", "quick", {})],
        as_tools([slow, quick]),
        ToolRun(emit=emit),
        finished=finished,
        first_index=5,
    )

    assert [result.message.content for result in results] == ["slow", "quick"]
    assert finished == [results[1], results[0]]
    assert indexes == [5, 6]


async def test_a_sink_that_fails_ends_the_batch_with_its_error() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def emit(event: RunEvent) -> None:
        if isinstance(event, ToolStarted) and event.index == 1:
            await started.wait()
            raise OSError("the reader is gone")

    with pytest.raises(OSError, match="the reader is gone"):
        await answer([wait], ToolCall("c1", "wait", {}), ToolCall("c2", "wait", {}), emit=emit)

    assert stopped.is_set()
