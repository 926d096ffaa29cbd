"""Servers that are child processes: how they start, break, come back, and are ended."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from graphwright.caller import CallerContext, calling_as, get_current_caller
from graphwright.exceptions import MCPError, ToolError
from graphwright.mcp.client import MCPPool

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_task_left")]

Plain = Callable[..., dict[str, Any]]
Ledger = Callable[[], list[str]]


def runs(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():  # noqa: ASYNC110 (what is waited for is in another process)
            await asyncio.sleep(0.005)


async def test_a_call_during_which_the_server_dies_is_an_error_at_once_and_the_next_starts_it_again(
    plain: Plain, ledger: Ledger
) -> None:
    async with MCPPool({"p": plain()}) as pool:
        begin = time.monotonic()
        with pytest.raises(MCPError) as caught:
            await pool.call_tool("p", "die")
        took = time.monotonic() - begin
        again = await pool.call_tool("p", "count")

    assert (caught.value.retryable, caught.value.sent, caught.value.server) == (True, True, "p")
    assert "may or may not have been carried out" in str(caught.value)
    assert took < 2
    assert again.content[0].text.startswith("count ")
    assert [line.split()[0] for line in ledger()] == ["start", "die", "start", "count", "end"]


async def test_all_calls_that_wait_when_the_server_dies_are_told_and_none_is_made_twice(
    plain: Plain, ledger: Ledger
) -> None:
    async with MCPPool({"p": plain()}) as pool:
        waiting = asyncio.create_task(pool.call_tool("p", "count"))
        others = [asyncio.create_task(pool.call_tool("p", "die")) for _ in range(3)]
        outcomes = await asyncio.gather(waiting, *others, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes[1:]] == [MCPError] * 3
    assert sorted(ledger()).count("die") == 1
    assert ledger().count("count") == 1


async def test_a_repeatable_call_is_made_again_after_the_server_died(plain: Plain, ledger: Ledger) -> None:
    async with MCPPool({"p": plain()}) as pool:
        with pytest.raises(MCPError, match="broke while it was at the call of 'die'"):
            await pool.call_tool("p", "die", repeatable=True)

    assert ledger().count("die") == 3


async def test_a_server_that_was_killed_between_calls_is_started_again_without_anybody_noticing(
    plain: Plain, ledger: Ledger
) -> None:
    async with MCPPool({"p": plain()}) as pool:
        first = int((await pool.call_tool("p", "count")).content[0].text.split()[1])
        os.kill(first, 9)
        await until(lambda: pool.stale)  # the end of the connection was seen
        second = int((await pool.call_tool("p", "count")).content[0].text.split()[1])

    assert first != second
    assert ledger().count("count") == 2


async def test_closing_ends_the_server_and_what_it_started(plain: Plain, ledger: Ledger) -> None:
    async with MCPPool({"p": plain("child")}) as pool:
        await pool.call_tool("p", "count")
        pids = [int(line.split()[1]) for line in ledger() if line.startswith(("start", "child"))]
        assert all(runs(pid) for pid in pids)

    assert len(pids) == 2
    await until(lambda: not any(runs(pid) for pid in pids))


async def test_a_crash_leaves_nothing_of_the_server_behind_either(plain: Plain, ledger: Ledger) -> None:
    async with MCPPool({"p": plain("child")}) as pool:
        with pytest.raises(MCPError):
            await pool.call_tool("p", "die")
        child = next(int(line.split()[1]) for line in ledger() if line.startswith("child"))

        await until(lambda: not runs(child))


async def test_a_server_that_ends_at_once_is_reported_with_what_it_wrote(plain: Plain) -> None:
    with pytest.raises(MCPError) as caught:
        async with MCPPool({"p": plain("quit")}):
            pass

    assert str(caught.value) == (
        "MCP server 'p' cannot be reached: its process ended before it answered; "
        "its error output ends with:\nplain server at work\nno licence found"
    )
    assert not caught.value.sent


async def test_a_program_that_does_not_exist_is_named(plain: Plain) -> None:
    with pytest.raises(MCPError, match=r"there is no program 'no-such-program' in the PATH") as caught:
        async with MCPPool({"p": {"command": "no-such-program"}}):
            pass

    assert not caught.value.retryable


async def test_a_server_that_never_answers_ends_in_a_timeout_and_is_killed(plain: Plain, ledger: Ledger) -> None:
    pool = MCPPool({"p": plain("silent", connect_timeout=0.3)})
    with pytest.raises(MCPError, match=r"did not answer within 0\.3 s; its error output ends with:\nplain server"):
        await pool.connect()
    await pool.close()

    assert not runs(int(ledger()[0].split()[1]))


async def test_what_is_no_message_is_logged_and_skipped(plain: Plain, caplog: pytest.LogCaptureFixture) -> None:
    async with MCPPool({"p": plain("garbage")}) as pool:
        result = await pool.call_tool("p", "count")

    assert result.content[0].text.startswith("count")
    assert "MCP server 'p' sent something that is no message" in caplog.text


async def test_an_answer_that_the_protocol_does_not_allow_is_an_error_of_the_call(plain: Plain) -> None:
    async with MCPPool({"p": plain()}) as pool:
        with pytest.raises(MCPError, match="answered the call of 'odd_result' with something that the protocol"):
            await pool.call_tool("p", "odd_result")

        assert (await pool.call_tool("p", "count")).content[0].text.startswith("count")


async def test_a_cancelled_call_is_cancelled_on_the_server(plain: Plain, ledger: Ledger) -> None:
    async with MCPPool({"p": plain()}) as pool:
        task = asyncio.create_task(pool.call_tool("p", "wait"))
        await until(lambda: "wait" in ledger())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: "notifications/cancelled" in ledger())

        assert (await pool.call_tool("p", "count")).content[0].text.startswith("count")


async def test_a_call_that_takes_too_long_is_an_error_and_is_cancelled_on_the_server(
    plain: Plain, ledger: Ledger
) -> None:
    async with MCPPool({"p": plain(call_timeout=0.2)}) as pool:
        with pytest.raises(MCPError, match=r"gave no answer to the call of 'wait' within 0\.2 s; it may or may not"):
            await pool.call_tool("p", "wait")
        await until(lambda: "notifications/cancelled" in ledger())
        await pool.call_tool("p", "count")

    assert len([line for line in ledger() if line.startswith("start")]) == 1


async def test_a_server_that_does_not_say_what_it_offers_holds_nobody_up(plain: Plain) -> None:
    pool = MCPPool({"p": plain("mute", connect_timeout=0.3)})
    with pytest.raises(MCPError, match=r"gave no answer to the question what it offers within 0\.3 s"):
        await pool.connect()
    await pool.close()


async def test_a_connection_that_all_share_does_not_run_as_the_caller_who_needed_it_first(plain: Plain) -> None:
    callers: list[Any] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            callers.append(get_current_caller())

    listener, log = Listener(), logging.getLogger("graphwright.mcp.server.p.saw")
    log.addHandler(listener)
    try:
        with calling_as(CallerContext(user_id="ann")):
            pool = MCPPool({"p": plain()})
            await pool.call_tool("p", "many_lines")
            await until(lambda: len(callers) == 3)
            await pool.close()
    finally:
        log.removeHandler(listener)

    assert callers == [None, None, None]


@pytest.mark.slow
async def test_a_server_that_no_longer_reads_is_given_up_and_started_again(plain: Plain, ledger: Ledger) -> None:
    async with MCPPool({"p": plain("deaf", call_timeout=0.3)}) as pool:
        await pool.call_tool("p", "count")
        for _ in range(2):
            with pytest.raises(MCPError, match="gave no answer"):
                await pool.call_tool("p", "count", {"big": "x" * 1_000_000})

        assert (await pool.call_tool("p", "count")).content[0].text.startswith("count")
    assert len([line for line in ledger() if line.startswith("start")]) == 2


async def test_log_messages_go_to_the_log(plain: Plain, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "graphwright.mcp.server"):
        async with MCPPool({"p": plain()}) as pool:
            await pool.call_tool("p", "many_lines")
            await until(lambda: "graphwright.mcp.server.p.saw" in caplog.text)

    said = [record for record in caplog.records if record.name == "graphwright.mcp.server.p.saw"]
    assert [(record.levelname, record.getMessage()) for record in said] == [("ERROR", str(n)) for n in range(3)]
    assert ("graphwright.mcp.server.p", logging.DEBUG, "plain server at work") in caplog.record_tuples


async def test_every_page_of_every_list_is_read(plain: Plain) -> None:
    async with MCPPool({"p": plain("pages")}, resources=True, prompts=True) as pool:
        catalogue = pool.catalogues["p"]
        names = [tool.name for tool in pool.tools()]

    assert [tool.name for tool in catalogue.tools] == names[:7]
    assert names[7:] == ["read_resource", "list_resources", "get_prompt"]
    assert [str(entry.uri) for entry in catalogue.resources] == ["shelf://0", "shelf://1", "shelf://2"]
    assert [entry.name for entry in catalogue.prompts] == ["p0", "p1", "p2"]


async def test_a_page_that_comes_again_and_again_ends_the_list(plain: Plain, caplog: pytest.LogCaptureFixture) -> None:
    async with MCPPool({"p": plain("loop")}) as pool:
        assert [tool.name for tool in pool.tools()] == ["count"]

    assert "repeats a page of its tools" in caplog.text


async def test_a_changed_list_is_read_again_by_the_next_refresh_and_not_before(plain: Plain) -> None:
    async with MCPPool({"p": plain()}) as pool:
        before = pool.tools()
        assert not await pool.refresh()
        await pool.call_tool("p", "change")
        await until(lambda: pool.stale)
        assert pool.tools() is before

        assert await pool.refresh()

        after = pool.tools()
        assert [tool.name for tool in after] == [*(tool.name for tool in before), "new_one"]
        assert after[: len(before)] == before
        assert not pool.stale


async def test_what_a_server_offered_is_kept_while_it_is_down(plain: Plain, ledger: Ledger) -> None:
    spec = plain()
    pool = MCPPool({"p": spec})
    async with pool:
        names = [tool.name for tool in pool.tools()]
        pool.servers["p"] = pool.servers["p"].model_copy(update={"args": ["-c", "import sys; sys.exit(7)"]})
        await pool._sessions.popitem()[1].close()  # the next is made of the spec that no longer works
        assert await pool.refresh(force=True) is False

        assert [tool.name for tool in pool.tools()] == names
        assert "its process ended before it answered" in str(pool.problems["p"])
        with pytest.raises(MCPError, match="it is tried again in 1 s"):
            await pool.call_tool("p", "count")


async def test_a_server_that_is_not_kept_alive_runs_for_one_request(plain: Plain, ledger: Ledger) -> None:
    async with MCPPool({"p": plain(keep_alive=False)}) as pool:
        pids = {(await pool.call_tool("p", "count")).content[0].text for _ in range(2)}
        await until(lambda: ledger().count("end of input") == 3)

        assert not await pool.refresh()
    assert len(pids) == 2


async def test_a_server_that_cannot_be_reached_can_be_left_out_for_now(
    plain: Plain, caplog: pytest.LogCaptureFixture
) -> None:
    pool = MCPPool({"good": plain(), "bad": plain("quit")})
    await pool.connect(strict=False)
    try:
        assert {tool.server for tool in pool.tools()} == {"good"}
        assert list(pool.problems) == ["bad"]
        assert "MCP server 'bad' is left out for now" in caplog.text
        with pytest.raises(MCPError, match="MCP server 'bad' cannot be reached"):
            await pool.connect()
    finally:
        await pool.close()


async def test_a_process_is_shared_by_all_callers_unless_each_is_to_have_one(plain: Plain) -> None:
    async with MCPPool({"all": plain(), "each": plain(per_caller=True)}) as pool:
        pids: dict[str, set[str]] = {"all": set(), "each": set()}
        for user in ("ann", "bob", "ann"):
            with calling_as(CallerContext(user_id=user, bearer_token="t")):
                for server in pids:
                    pids[server].add((await pool.call_tool(server, "count")).content[0].text)

    assert {server: len(found) for server, found in pids.items()} == {"all": 1, "each": 2}


async def test_servers_are_connected_to_side_by_side(plain: Plain) -> None:
    """A server of which nothing is heard holds up no other."""
    async with MCPPool({str(number): plain() for number in range(4)}) as pool:
        assert len(pool.catalogues) == 4
    assert len({tool.name for tool in pool.tools()}) == 4 * 7


async def test_the_pool_serves_another_loop_while_its_own_runs(plain: Plain) -> None:
    async with MCPPool({"p": plain()}) as pool:
        result = await asyncio.to_thread(lambda: asyncio.run(pool.call_tool("p", "count")))

        with pytest.raises(MCPError):
            await asyncio.to_thread(lambda: asyncio.run(pool.call_tool("p", "die")))
    assert result.content[0].text.startswith("count")


def test_the_pool_starts_anew_when_its_loop_has_ended(plain: Plain, ledger: Ledger) -> None:
    pool = MCPPool({"p": plain()})
    asyncio.run(pool.connect())
    result = asyncio.run(_call_and_close(pool))

    assert result.content[0].text.startswith("count")
    assert ledger().count("end of input") == 2


async def _call_and_close(pool: MCPPool) -> Any:
    try:
        return await pool.call_tool("p", "count")
    finally:
        await pool.close()


async def test_a_question_over_stdio_reaches_the_person_of_the_one_call_that_goes_on(plain: Plain) -> None:
    asked: list[Any] = []

    async def on_elicit(server: str, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        asked.append((server, message, schema))
        return {"action": "accept", "content": {"size": 4}}

    async with MCPPool({"p": plain()}, on_elicit=on_elicit) as pool:
        result = await pool.call_tool("p", "ask")

    properties = {"size": {"type": "integer"}}
    assert asked == [("p", "Which size?", {"type": "object", "properties": properties, "required": ["size"]})]
    assert result.content[0].text == '{"action": "accept", "content": {"size": 4}}'


async def test_an_answer_that_does_not_fit_is_refused(plain: Plain) -> None:
    async def on_elicit(*_: Any) -> dict[str, Any]:
        return {"action": "accept", "content": {"size": "big"}}

    async with MCPPool({"p": plain()}, on_elicit=on_elicit) as pool:
        result = await pool.call_tool("p", "ask")

    assert "size: should be an integer, not 'big'" in result.content[0].text


async def test_what_goes_wrong_with_who_is_asked_is_not_told_to_the_server(
    plain: Plain, caplog: pytest.LogCaptureFixture
) -> None:
    async def on_elicit(*_: Any) -> None:
        raise RuntimeError("s3cret")

    async with MCPPool({"p": plain()}, on_elicit=on_elicit) as pool:
        result = await pool.call_tool("p", "ask")

    assert "the question could not be answered" in result.content[0].text
    assert "s3cret" not in result.content[0].text
    assert "s3cret" in caplog.text


async def test_a_question_without_anybody_to_answer_is_declined(plain: Plain) -> None:
    async def nobody(*_: Any) -> None:
        return None

    async with MCPPool({"p": plain()}, on_elicit=nobody) as pool:
        result = await pool.call_tool("p", "ask")

    assert result.content[0].text == '{"action": "decline"}'


class Paused(BaseException):
    pass


async def test_a_signal_of_who_is_asked_ends_the_call_and_cancels_it_on_the_server(
    plain: Plain, ledger: Ledger
) -> None:
    async def on_elicit(*_: Any) -> None:
        raise Paused

    async with MCPPool({"p": plain()}, on_elicit=on_elicit) as pool:
        with pytest.raises(Paused):
            await pool.call_tool("p", "ask")

        assert (await pool.call_tool("p", "count")).content[0].text.startswith("count")


async def test_while_a_person_is_asked_the_clock_of_the_call_stands_still(plain: Plain) -> None:
    async def on_elicit(*_: Any) -> dict[str, Any]:
        await asyncio.sleep(0.2)
        return {"action": "accept", "content": {"size": 1}}

    async with MCPPool({"p": plain(call_timeout=0.12)}, on_elicit=on_elicit) as pool:
        result = await pool.call_tool("p", "ask")

    assert "accept" in result.content[0].text


async def test_a_question_that_could_be_of_either_of_two_calls_reaches_nobody(
    plain: Plain, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[Any] = []

    async def on_elicit(*question: Any) -> None:
        asked.append(question)

    async with MCPPool({"p": plain()}, on_elicit=on_elicit) as pool:
        first = asyncio.create_task(pool.call_tool("p", "ask"))
        second = asyncio.create_task(pool.call_tool("p", "count"))
        result = await first
        second.cancel()
        await asyncio.wait({second})

    assert asked == []
    assert result.content[0].text == '{"action": "decline"}'
    assert "does not say for which request" in caplog.text


async def test_an_error_of_the_server_is_for_the_model_to_read() -> None:
    code = (
        "import json,sys\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if 'id' not in m: continue\n"
        "    info = {'protocolVersion': '2025-06-18', 'capabilities': {}}\n"
        "    info['serverInfo'] = {'name': 'x', 'version': '1'}\n"
        "    ok = m['method'] == 'initialize'\n"
        "    body = {'result': info} if ok else {'error': {'code': -32602, 'message': 'no such saw'}}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], **body}), flush=True)\n"
    )
    async with MCPPool({"p": {"command": sys.executable, "args": ["-c", code]}}) as pool:
        assert pool.tools() == []
        with pytest.raises(ToolError, match="MCP server 'p' refused the call of 'x': no such saw"):
            await pool.call_tool("p", "x")
