"""Servers over HTTP: what is sent to whom, and what happens when they are away, restarted, or say no."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from graphwright.caller import CallerContext, calling_as
from graphwright.exceptions import MCPConnectionRejectedError, MCPCredentialError, MCPError
from graphwright.mcp.client import MCPPool

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_task_left")]

Serve = Callable[..., AbstractAsyncContextManager[Any]]
Build = Callable[[], Any]


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphwright.mcp.client.session._PATIENCE_SECONDS", 0.2)


def who(result: Any) -> Any:
    return result.structured_content


@pytest.mark.parametrize(("protocol", "transport"), [("auto", "http"), ("legacy", "streamable-http")])
async def test_a_call_works_over_both_protocol_generations(
    serve: Serve, workshop: Build, protocol: str, transport: str
) -> None:
    async with (
        serve(workshop().streamable_http_app()) as site,
        MCPPool({"w": {"url": site.url, "protocol": protocol, "transport": transport}}) as pool,
    ):
        result = await pool.call_tool("w", "add", {"a": 1, "b": 2})

        assert result.structured_content == {"result": 3}
        assert pool.catalogues["w"].protocol == ("2026-07-28" if protocol == "auto" else "2025-11-25")
        assert pool.catalogues["w"].server == "workshop 1.0"
        assert pool.catalogues["w"].instructions == "Measure twice."


async def test_a_call_works_over_the_older_transport_with_two_endpoints(serve: Serve, workshop: Build) -> None:
    async with serve(workshop().sse_app()) as site:
        url = site.url.replace("/mcp", "/sse")
        async with MCPPool({"w": {"url": url, "transport": "sse", "headers": {"X-Team": "red"}}}) as pool:
            result = await pool.call_tool("w", "who")
            await site.stop()
            with pytest.raises(MCPError):
                await pool.call_tool("w", "count")

    assert who(result)["x-team"] == "red"


async def test_a_rejected_message_on_the_older_transport_is_an_error_and_no_hang(
    serve: Serve, workshop: Build, guard: Any
) -> None:
    app = guard(workshop().sse_app())
    async with (
        serve(app) as site,
        MCPPool({"w": {"url": site.url.replace("/mcp", "/sse"), "transport": "sse"}}) as pool,
    ):
        app.answer_status = 500
        async with asyncio.timeout(5):
            with pytest.raises(MCPError, match="MCP server 'w'"):
                await pool.call_tool("w", "count")


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, {"authorization": None, "x-api-key": None, "x-team": None}),
        ({"bearer_token": "tok"}, {"authorization": "Bearer tok", "x-api-key": None, "x-team": None}),
        ({"api_key": "key"}, {"authorization": None, "x-api-key": "key", "x-team": None}),
        ({"headers": {"X-Team": "red"}}, {"authorization": None, "x-api-key": None, "x-team": "red"}),
        (
            {"headers": {"authorization": "Basic x"}, "token_provider": lambda: "made"},
            {"authorization": "Bearer made", "x-api-key": None, "x-team": None},
        ),
    ],
)
async def test_the_servers_own_credentials_are_sent(
    serve: Serve, workshop: Build, options: dict[str, Any], sent: dict[str, Any]
) -> None:
    async with (
        serve(workshop().streamable_http_app()) as site,
        MCPPool({"w": {"url": site.url, **options}}) as pool,
    ):
        assert who(await pool.call_tool("w", "who")) == {**sent, "mcp-session-id": None}


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_no_session_is_shared_by_two_callers_and_each_call_has_its_own_callers_token(
    serve: Serve, workshop: Build, guard: Any, protocol: str
) -> None:
    app = guard(workshop().streamable_http_app())
    callers = {
        "ann": CallerContext(user_id="ann", bearer_token="A"),
        "bob": CallerContext(user_id="bob", bearer_token="B"),
        "cat": CallerContext(user_id="cat", bearer_token="C"),
        "cat's twin": CallerContext(user_id="twin", bearer_token="C"),
        "dan": CallerContext(user_id="dan"),
        "nobody": None,
    }
    seen: dict[str, list[tuple[str, str]]] = {name: [] for name in callers}

    async def call(pool: MCPPool, name: str) -> None:
        with calling_as(callers[name]):
            for _ in range(5):
                came = who(await pool.call_tool("w", "who"))
                seen[name].append((came["authorization"], came["mcp-session-id"]))
            if name == "bob":
                slow = asyncio.create_task(pool.call_tool("w", "slow", {"seconds": 30}))
                await asyncio.sleep(0)
                slow.cancel()
                await asyncio.wait({slow})

    async with serve(app) as site:
        spec = {"url": site.url, "protocol": protocol, "bearer_token": "own"}
        async with MCPPool({"w": spec}) as pool:
            await asyncio.gather(*(call(pool, name) for name in callers))

    tokens = {name: {token for token, _ in entries} for name, entries in seen.items()}
    assert tokens == {
        "ann": {"Bearer A"},
        "bob": {"Bearer B"},
        "cat": {"Bearer C"},
        "cat's twin": {"Bearer C"},
        "dan": {"Bearer own"},
        "nobody": {"Bearer own"},
    }
    sessions = {name: {session for _, session in entries} for name, entries in seen.items()}
    if protocol == "legacy":
        assert all(len(ids) == 1 for ids in sessions.values())
        assert len(set.union(*sessions.values())) == len(callers)
    by_session: dict[str, set[str]] = {}
    for entry in app.requests:
        by_session.setdefault(entry["session"], set()).add(entry["token"])
    assert all(len(tokens) == 1 for session, tokens in by_session.items() if session is not None)


async def test_a_server_can_opt_out_of_the_callers_token(serve: Serve, workshop: Build) -> None:
    async with serve(workshop().streamable_http_app()) as site:
        spec = {"url": site.url, "forward_caller_token": False, "bearer_token": "own"}
        async with MCPPool({"w": spec, "key": {"url": site.url, "api_key": "k"}}) as pool:
            with calling_as(CallerContext(user_id="ann", bearer_token="A")):
                out, key = await pool.call_tool("w", "who"), await pool.call_tool("key", "who")

    assert who(out)["authorization"] == "Bearer own"
    assert (who(key)["authorization"], who(key)["x-api-key"]) == (None, "k")


async def test_the_servers_credentials_and_not_the_callers_find_out_what_it_offers(
    serve: Serve, workshop: Build, guard: Any
) -> None:
    app = guard(workshop().streamable_http_app())
    async with serve(app) as site:
        with calling_as(CallerContext(user_id="ann", bearer_token="A")):
            async with MCPPool({"w": {"url": site.url, "bearer_token": "own"}}):
                pass

    assert {entry["token"] for entry in app.requests} == {"own"}


async def test_a_callers_token_that_is_rejected_is_an_error_that_says_whose_it_was(
    serve: Serve, workshop: Build, guard: Any
) -> None:
    app = guard(workshop().streamable_http_app(), accepted={"own"})
    async with serve(app) as site, MCPPool({"w": {"url": site.url, "bearer_token": "own"}}) as pool:
        with (
            calling_as(CallerContext(user_id="ann", bearer_token="stolen")),
            pytest.raises(MCPConnectionRejectedError) as caught,
        ):
            await pool.call_tool("w", "count")

    assert str(caught.value) == (
        "MCP server 'w' rejected the connection with HTTP 401; check its credentials; "
        "it was sent the caller's bearer token"
    )
    assert app.calls() == []


async def test_a_token_that_has_ended_is_renewed_once_and_the_call_is_made_with_the_new_one(
    serve: Serve, workshop: Build, guard: Any
) -> None:
    app = guard(workshop().streamable_http_app(), accepted={"t1"})
    tokens = ["t1"]
    asked: list[bool] = []

    async def provide(refresh: bool = False) -> str:
        asked.append(refresh)
        if refresh:
            tokens.append(f"t{len(tokens) + 1}")
        return tokens[-1]

    async with serve(app) as site, MCPPool({"w": {"url": site.url, "token_provider": provide}}) as pool:
        assert who(await pool.call_tool("w", "who"))["authorization"] == "Bearer t1"
        app.accepted = {"t2"}
        assert who(await pool.call_tool("w", "who"))["authorization"] == "Bearer t2"
        app.accepted = {"nothing"}
        with pytest.raises(MCPConnectionRejectedError, match="and then a renewed one"):
            await pool.call_tool("w", "who")

    assert asked == [False, False, False, True, False, True]


async def test_a_token_that_changes_opens_a_session_of_its_own(serve: Serve, workshop: Build, guard: Any) -> None:
    app = guard(workshop().streamable_http_app())
    tokens = iter(["a", "a", "b", "b"])

    async with serve(app) as site:
        spec = {"url": site.url, "protocol": "legacy", "token_provider": lambda: next(tokens)}
        async with MCPPool({"w": spec}) as pool:
            came = [who(await pool.call_tool("w", "who")) for _ in range(3)]

    assert [entry["authorization"] for entry in came] == ["Bearer a", "Bearer b", "Bearer b"]
    assert came[0]["mcp-session-id"] != came[1]["mcp-session-id"] == came[2]["mcp-session-id"]


class Identity:
    def __init__(self) -> None:
        self.asked: list[tuple[str | None, bool]] = []

    async def token(self, audience: str | None, *, refresh: bool = False) -> str:
        self.asked.append((audience, refresh))
        return f"agent-for-{audience}"


async def test_the_agents_identity_speaks_where_a_server_has_no_bearer_of_its_own(
    serve: Serve, workshop: Build
) -> None:
    identity = Identity()
    async with serve(workshop().streamable_http_app()) as site:
        servers = {
            "plain": {"url": site.url, "audience": "saws"},
            "own": {"url": site.url, "bearer_token": "own"},
            "header": {"url": site.url, "headers": {"Authorization": "Basic x"}},
        }
        async with MCPPool(servers, identity=identity) as pool:
            came = {name: who(await pool.call_tool(name, "who"))["authorization"] for name in servers}
            with calling_as(CallerContext(user_id="ann", bearer_token="A")):
                forwarded = who(await pool.call_tool("plain", "who"))["authorization"]

    assert came == {"plain": "Bearer agent-for-saws", "own": "Bearer own", "header": "Basic x"}
    assert forwarded == "Bearer A"
    assert set(identity.asked) == {("saws", False)}


def _raises() -> str:
    raise OSError("the issuer is away, secret=s3cret")


async def _hangs() -> str:
    await asyncio.sleep(60)
    return "late"


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        (_raises, r"token_provider gave no credential for the MCP server 'w' \(OSError\); nothing was sent"),
        (_hangs, r"token_provider gave no credential for the MCP server 'w' within 0\.2 s; nothing was sent"),
        (lambda: "", "token_provider for the MCP server 'w' is an empty text"),
        (lambda: None, "token_provider for the MCP server 'w' is NoneType that no header can hold"),
        (lambda: "a\r\nX-Evil: 1", "token_provider for the MCP server 'w' is str that no header can hold"),
    ],
)
async def test_nothing_is_sent_when_a_credential_cannot_be_had(
    serve: Serve, workshop: Build, guard: Any, provider: Any, message: str
) -> None:
    app = guard(workshop().streamable_http_app())
    async with serve(app) as site:
        pool = MCPPool({"w": {"url": site.url, "token_provider": provider, "connect_timeout": 0.2}})
        with pytest.raises(MCPCredentialError, match=message) as caught:
            await pool.connect()
        await pool.close()

    assert app.requests == []
    assert "s3cret" not in str(caught.value)


async def test_a_token_of_a_caller_that_no_header_can_hold_is_not_sent(
    serve: Serve, workshop: Build, guard: Any
) -> None:
    app = guard(workshop().streamable_http_app())
    async with serve(app) as site, MCPPool({"w": {"url": site.url}}) as pool:
        with (
            calling_as(CallerContext(user_id="ann", bearer_token="a b\n")),
            pytest.raises(MCPCredentialError, match="the caller's bearer token for the MCP server 'w'"),
        ):
            await pool.call_tool("w", "count")

    assert app.calls() == []


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_a_restarted_server_is_used_again_and_each_call_is_carried_out_once(
    serve: Serve, workshop: Build, guard: Any, protocol: str
) -> None:
    first, second = guard(workshop().streamable_http_app()), guard(workshop().streamable_http_app())
    pool = MCPPool({"w": {"url": "http://127.0.0.1:1/mcp"}})
    async with serve(first) as site:
        pool = MCPPool({"w": {"url": site.url, "protocol": protocol}})
        await pool.connect()
        await pool.call_tool("w", "count")
        await site.stop()
    async with serve(second, port=site.port):
        results = await asyncio.gather(*(pool.call_tool("w", "count") for _ in range(5)))
        await pool.close()

    assert [result.content[0].text for result in results] == ["counted"] * 5
    carried_out = [entry for entry in second.calls() if entry["session"] not in _old(first)]
    assert len(carried_out) == 5
    assert len([entry for entry in second.requests if entry["method"] == "initialize"]) == (protocol == "legacy")


def _old(app: Any) -> set[str]:
    return {entry["session"] for entry in app.requests if entry["session"] is not None}


async def test_a_server_that_forgets_every_session_is_an_error_and_no_loop(
    serve: Serve, workshop: Build, guard: Any
) -> None:
    app = guard(workshop().streamable_http_app())
    async with serve(app) as site, MCPPool({"w": {"url": site.url, "protocol": "legacy"}}) as pool:
        inner = app.app

        async def forgetful(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and app.requests[-1]["method"] == "tools/call":
                scope = {**scope, "headers": [*_without_session(scope["headers"]), (b"mcp-session-id", b"0" * 32)]}
            await inner(scope, receive, send)

        app.app = forgetful
        with pytest.raises(MCPError, match="knows the session no more, and the call of 'count' was not carried out"):
            await pool.call_tool("w", "count")

    assert len(app.calls()) == 2


def _without_session(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name != b"mcp-session-id"]


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_a_server_that_is_away_is_an_error_and_is_used_again_when_it_is_back(
    serve: Serve, workshop: Build, protocol: str
) -> None:
    async with serve(workshop().streamable_http_app()) as site:
        pool = MCPPool({"w": {"url": site.url, "protocol": protocol}})
        await pool.connect()
        await site.stop()
        with pytest.raises(MCPError, match=r"MCP server 'w' cannot be reached") as caught:
            await pool.call_tool("w", "count")
        assert (caught.value.retryable, caught.value.sent) == (True, False)
        with pytest.raises(MCPError, match="it is tried again in 1 s"):
            await pool.call_tool("w", "count")
        assert pool.tools() != []
    next(iter(pool._sessions.values()))._down = None  # as if the pause were over
    async with serve(workshop().streamable_http_app(), port=site.port):
        assert (await pool.call_tool("w", "count")).content[0].text == "counted"
        await pool.close()


async def test_calls_that_wait_are_told_when_the_connection_is_cut_and_only_a_repeatable_one_is_made_again(
    serve: Serve, workshop: Build, guard: Any
) -> None:
    app = guard(workshop().streamable_http_app())
    async with serve(app) as site:
        pool = MCPPool({"w": {"url": site.url}})
        await pool.connect()
        waiting = [
            asyncio.create_task(pool.call_tool("w", "slow", {"seconds": 30})),
            asyncio.create_task(pool.call_tool("w", "slow", {"seconds": 0.0}, repeatable=True)),
        ]
        app.delay = 0.05
        while len(app.calls()) < 2:  # noqa: ASYNC110 (what is waited for comes over the wire)
            await asyncio.sleep(0.002)
        await site.stop()
        async with serve(guard(workshop().streamable_http_app()), port=site.port):
            lost, made_again = await asyncio.gather(*waiting, return_exceptions=True)
            await pool.close()

    assert isinstance(lost, MCPError)
    assert (lost.retryable, lost.sent) == (True, True)
    assert "may or may not have been carried out" in str(lost)
    assert not isinstance(made_again, BaseException)
    assert made_again.content[0].text == "slept"


@pytest.mark.slow
async def test_a_server_process_that_dies_during_a_call_is_an_error_within_seconds(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    async with _process(ledger) as (process, url), MCPPool({"w": {"url": url}}) as pool:
        async with asyncio.timeout(5):
            with pytest.raises(MCPError, match="broke"):
                await pool.call_tool("w", "die")
        process.wait(5)

    assert ledger.read_text().splitlines()[1:] == ["die"]


def _process(ledger: Path) -> Any:
    from socket import create_connection, socket

    @asynccontextmanager
    async def run() -> Any:
        with socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        script = Path(__file__).parent / "servers" / "workshop.py"
        process = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, str(script), "http", str(port)], env={"LEDGER": str(ledger)}, stderr=subprocess.DEVNULL
        )
        try:
            while True:
                try:
                    create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    await asyncio.sleep(0.05)
            yield process, f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()
            process.wait(5)

    return run()


@pytest.mark.parametrize(
    ("status", "message", "retryable"),
    [
        (403, "rejected the call of 'count' with HTTP 403", False),
        (429, "has too much to do", True),
        (503, "failed with HTTP 503", True),
    ],
)
async def test_a_status_that_says_no_is_told_for_what_it_is(
    serve: Serve, workshop: Build, guard: Any, status: int, message: str, retryable: bool
) -> None:
    app = guard(workshop().streamable_http_app())
    async with serve(app) as site, MCPPool({"w": {"url": site.url}}) as pool:
        app.answer_status = status
        with pytest.raises(MCPError, match=message) as caught:
            await pool.call_tool("w", "count")

    assert caught.value.retryable is retryable
    assert len(app.calls()) == 1


async def test_a_page_that_is_no_mcp_server_is_an_error(serve: Serve) -> None:
    async def site_app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            head = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]}
            await send(head)
            await send({"type": "http.response.body", "body": b"<html>"})

    async with serve(site_app) as site:
        with pytest.raises(MCPError, match="cannot be reached: MCPError: Unexpected content type: text/html"):
            await MCPPool({"w": {"url": site.url}}).connect()


async def test_the_pool_is_bounded_and_the_least_recently_used_idle_session_makes_room(
    serve: Serve, workshop: Build, guard: Any
) -> None:
    app = guard(workshop().streamable_http_app())
    async with serve(app) as site, MCPPool({"w": {"url": site.url, "protocol": "legacy"}}, max_sessions=3) as pool:

        async def call(user: int) -> None:
            with calling_as(CallerContext(user_id=str(user), bearer_token=f"t{user}")):
                await pool.call_tool("w", "count")

        await asyncio.gather(*(call(user) for user in range(8)))
        assert len(pool._sessions) == 4
        await call(99)
        await call(99)

    opened = [entry["token"] for entry in app.requests if entry["method"] == "initialize"]
    assert sorted(opened[1:]) == sorted([*(f"t{user}" for user in range(8)), "t99"])
    deleted = [entry["token"] for entry in app.requests if entry["http"] == "DELETE"]
    assert sorted(deleted) == sorted(opened)


async def test_a_caller_for_whom_there_is_no_room_is_told(serve: Serve, workshop: Build) -> None:
    async with serve(workshop().streamable_http_app()) as site:
        servers = {"w": {"url": site.url, "connect_timeout": 0.1}}
        async with MCPPool(servers, max_sessions=1) as pool:
            with calling_as(CallerContext(user_id="ann")):
                slow = asyncio.create_task(pool.call_tool("w", "slow", {"seconds": 30}))
                await asyncio.sleep(0.01)
            with calling_as(CallerContext(user_id="bob")), pytest.raises(MCPError, match="all 1 sessions are in use"):
                await pool.call_tool("w", "count")
            slow.cancel()
            await asyncio.wait({slow})


async def test_a_session_that_nobody_uses_is_closed(serve: Serve, workshop: Build, guard: Any) -> None:
    app = guard(workshop().streamable_http_app())
    async with serve(app) as site:
        servers = {"w": {"url": site.url, "protocol": "legacy", "idle_timeout": 0.1}}
        async with MCPPool(servers) as pool:
            with calling_as(CallerContext(user_id="ann")):
                await pool.call_tool("w", "count")
            async with asyncio.timeout(3):
                while len([entry for entry in app.requests if entry["http"] == "DELETE"]) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert pool._sessions == {}
            assert (await pool.call_tool("w", "count")).content[0].text == "counted"


async def test_progress_is_reported_in_the_context_of_the_call(serve: Serve, workshop: Build) -> None:
    from graphwright.caller import get_current_caller

    seen: list[Any] = []

    async def progressed(*report: Any) -> None:
        caller = get_current_caller()
        seen.append((caller.user_id if caller else None, *report))

    async with (
        serve(workshop().streamable_http_app()) as site,
        MCPPool({"w": {"url": site.url}}, on_progress=progressed) as pool,
    ):
        with calling_as(CallerContext(user_id="ann")):
            await pool.call_tool("w", "slow", {"seconds": 0.01})

    assert seen[:1] == [("ann", "w", "slow", 1.0, 2.0, "half")]


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_a_question_reaches_the_person_of_the_call_over_both_protocol_generations(
    serve: Serve, workshop: Build, protocol: str
) -> None:
    from graphwright.caller import get_current_caller

    asked: list[Any] = []

    async def on_elicit(server: str, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        caller = get_current_caller()
        assert caller is not None
        asked.append((caller.user_id, server, message, sorted(schema["properties"])))
        return {"action": "accept", "content": {"size": len(str(caller.user_id))}}

    async with (
        serve(workshop().streamable_http_app()) as site,
        MCPPool({"w": {"url": site.url, "protocol": protocol}}, on_elicit=on_elicit) as pool,
    ):

        async def cut(user: str) -> str:
            with calling_as(CallerContext(user_id=user)):
                return str((await pool.call_tool("w", "cut", {"what": user})).content[0].text)

        results = await asyncio.gather(cut("ann"), cut("robert"))

    assert results == ["cut ann to 3", "cut robert to 6"]
    assert sorted(asked) == [("ann", "w", "Which size?", ["size"]), ("robert", "w", "Which size?", ["size"])]


class Paused(BaseException):
    pass


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_a_signal_of_who_is_asked_reaches_whoever_made_the_call(
    serve: Serve, workshop: Build, protocol: str
) -> None:
    async def on_elicit(*_: Any) -> None:
        raise Paused

    async with (
        serve(workshop().streamable_http_app()) as site,
        MCPPool({"w": {"url": site.url, "protocol": protocol}}, on_elicit=on_elicit) as pool,
    ):
        with pytest.raises(Paused):
            await pool.call_tool("w", "cut", {"what": "wood"})


@asynccontextmanager
async def cut_at(port: int, *, asked: bytes | None = None, answered: bytes | None = None) -> AsyncIterator[str]:
    """Stand between client and server, and cut the one connection on which a word comes by."""
    pumps: set[asyncio.Task[None]] = set()
    writers: list[Any] = []

    async def pump(reader: Any, writer: Any, other: Any, word: bytes | None) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if word is not None and word in data:
                    writer.write(data[: data.index(word)] if word == answered else b"")
                    await writer.drain()
                    writer.transport.close()
                    other.transport.close()
                    return
                writer.write(data)
            writer.transport.close()

    async def accept(reader: Any, writer: Any) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", port)
        writers.extend((writer, forth))
        for task in (
            asyncio.create_task(pump(reader, forth, writer, asked)),
            asyncio.create_task(pump(back, writer, forth, answered)),
        ):
            pumps.add(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)
        await server.wait_closed()


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
@pytest.mark.parametrize("word", [{"asked": b'"count"'}, {"answered": b"counted"}])
async def test_a_request_whose_connection_breaks_fails_alone(
    serve: Serve, workshop: Build, protocol: str, word: dict[str, bytes]
) -> None:
    app = workshop().streamable_http_app(json_response=True)
    async with (
        serve(app) as site,
        cut_at(site.port, **word) as url,
        MCPPool({"w": {"url": url, "protocol": protocol}}) as pool,
    ):
        waiting = asyncio.create_task(pool.call_tool("w", "slow", {"seconds": 0.15}))
        await asyncio.sleep(0.03)
        with pytest.raises(MCPError, match=r"broke|no message") as caught:
            await pool.call_tool("w", "count")
        result = await waiting
        opened = next(iter(pool._sessions.values())).connections

    assert caught.value.sent
    assert result.content[0].text == "slept"
    assert opened == 1
