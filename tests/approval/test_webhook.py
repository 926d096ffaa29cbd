"""The webhook handler against a real server, and the signatures on both ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import pytest

from graphwright import build_agent
from graphwright.approval import (
    ApprovalPolicy,
    ApprovalRequest,
    SignatureChecker,
    WebhookApprovalHandler,
    signed_headers,
)
from graphwright.exceptions import ConfigurationError, GraphwrightError
from graphwright.testing import ScriptedModel, calls, says

pytest.importorskip("aiohttp", reason="aiohttp is not installed; uv pip install aiohttp")
pytest.importorskip("httpx", reason="httpx is not installed; uv pip install httpx")

from aiohttp import web

SECRET = "shared"


class Service:
    """A review service: what it was asked, and what it answers, one answer a request."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[str, dict[str, str], bytes, str]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.seen.append((request.method, dict(request.headers), body, request.path_qs))
        answer = self.answers.pop(0)
        return answer(self) if callable(answer) else answer

    @property
    def asked(self) -> dict[str, Any]:
        return dict(json.loads(self.seen[0][2]))


def reply(status: int = 200, /, **data: Any) -> Callable[[Service], web.Response]:
    return lambda service: web.json_response(data, status=status)


def signed(secret: str = SECRET, *, at: float | None = None, **data: Any) -> Callable[[Service], web.Response]:
    def make(service: Service) -> web.Response:
        body = json.dumps({"request_id": service.asked["request_id"], **data}).encode()
        return web.Response(body=body, headers=signed_headers(secret, body, at=at), content_type="application/json")

    return make


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[Service]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", service.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield service
    finally:
        await runner.cleanup()


def handler(service: Service, **options: Any) -> WebhookApprovalHandler:
    options = {"secret": SECRET, "allow_private_networks": True, "poll_interval": 0.001, **options}
    return WebhookApprovalHandler(f"{service.url}/ask", **options)


def asking() -> ApprovalRequest:
    return ApprovalRequest(tool_name="rm", arguments={"path": "/ä"}, raw_arguments={"path": "/ä", "key": "hidden"})


async def test_the_request_is_signed_and_holds_nothing_hidden() -> None:
    async with serving(Service(reply(approved=True, reviewer_id="ann", extra="ignored"))) as service:
        request = asking()

        decision = await handler(service, headers={"X-Team": "ops"}).request_approval(request)

    assert (decision.approved, decision.reviewer_id) == (True, "ann")
    [(method, headers, body, path)] = service.seen
    assert (method, path, headers["X-Team"]) == ("POST", "/ask", "ops")
    assert headers["Host"] == service.url.removeprefix("http://")
    assert headers["X-Approval-Request-Id"] == request.request_id
    assert json.loads(body) == request.to_dict()
    assert b"hidden" not in body
    checker = SignatureChecker(SECRET)
    assert checker.problem(headers, body) == ""
    assert checker.problem(headers, body) == "it was sent before"
    assert SignatureChecker("another").problem(headers, body) == "its signature is wrong"
    assert SignatureChecker(SECRET).problem(headers, body + b" ") == "its signature is wrong"


async def test_a_service_that_takes_its_time_is_polled() -> None:
    async with serving(
        Service(
            reply(202),
            reply(404),
            reply(503),
            reply(status="pending"),
            lambda s: web.json_response({"approved": False, "reason": "no", "request_id": s.asked["request_id"]}),
        )
    ) as service:
        request = asking()

        decision = await handler(service, poll_url=f"{service.url}/poll?x=1").request_approval(request)

    assert (decision.approved, decision.reason) == (False, "no")
    assert [method for method, *_ in service.seen] == ["POST", "GET", "GET", "GET", "GET"]
    assert {path for *_, path in service.seen[1:]} == {f"/poll?x=1&request_id={request.request_id}"}
    checker = SignatureChecker(SECRET)
    assert [checker.problem(headers, body) for _, headers, body, _ in service.seen] == [""] * 5


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (reply(approved=True, request_id="0" * 32), "is for the request"),
        (reply(approved="true"), "approved is 'true'"),
        (reply(approved=1), "approved is 1"),
        (reply(verdict="yes"), "no decision"),
        (reply(500), "status 500"),
        (reply(302, approved=True), "status 302"),
        (reply(202), "there is no poll_url"),
        (lambda s: web.Response(text="approved"), "is no JSON"),
        (lambda s: web.json_response([True]), "is no JSON object"),
        (lambda s: web.Response(body=b" " * 70_000), "longer than 65536 bytes"),
        (signed("forged", approved=True), "its signature is wrong"),
        (signed(at=1.0, approved=True), "seconds old"),
    ],
)
async def test_an_answer_that_cannot_be_trusted_is_none(answer: Any, said: str) -> None:
    async with serving(Service(answer)) as service:
        with pytest.raises(GraphwrightError, match=said):
            await handler(service).request_approval(asking())


async def test_signed_answers_are_demanded_where_that_is_said_and_taken_once() -> None:
    kept: list[web.Response] = []

    def keep(service: Service) -> web.Response:
        body = json.dumps({"approved": True, "request_id": service.asked["request_id"]}).encode()
        headers = signed_headers(SECRET, body)
        kept.append(web.Response(body=body, headers=headers))
        return web.Response(body=body, headers=headers)

    async with serving(Service(keep, lambda s: kept[0], reply(approved=True))) as service:
        demanding = handler(service, signed_answers=True)
        request = asking()
        assert (await demanding.request_approval(request)).approved is True
        with pytest.raises(GraphwrightError, match="it was sent before"):
            await demanding.request_approval(request)
        with pytest.raises(GraphwrightError, match="it is not signed"):
            await demanding.request_approval(asking())


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "169.254.169.254", "10.0.0.1", "[::1]", "[::ffff:10.0.0.1]"]
)
async def test_a_private_address_is_refused_before_anything_is_sent(host: str) -> None:
    asked = WebhookApprovalHandler(f"http://{host}:9/ask", secret=SECRET)

    with pytest.raises(GraphwrightError, match="private or reserved network"):
        await asked.request_approval(asking())


async def test_the_address_to_poll_is_looked_at_too() -> None:
    class Client:
        """Stands where the public service would be."""

        def build_request(self, method: str, url: Any, **options: Any) -> Any:
            return method

        async def send(self, request: Any, **options: Any) -> Any:
            import httpx

            return httpx.Response(202)

    asked = WebhookApprovalHandler(
        "http://8.8.8.8/ask", secret=SECRET, poll_url="http://10.0.0.1/", poll_interval=0.001, http_client=Client()
    )

    with pytest.raises(GraphwrightError, match="private or reserved network"):
        await asked.request_approval(asking())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "ftp://x"}, "url is 'ftp://x'"),
        ({"url": "http:///x"}, "url is"),
        ({"url": "https://u:p@host/"}, "user name or password"),
        ({"poll_url": 3}, "poll_url is 3"),
        ({"secret": ""}, "secret is empty"),
        ({"poll_interval": 0}, "poll_interval is 0"),
    ],
)
def test_what_does_not_fit_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        WebhookApprovalHandler(**{"url": "https://example.com/", "secret": SECRET, **options})


async def test_an_agent_is_denied_when_the_service_is_gone() -> None:
    ran: list[str] = []

    async def rm(path: str) -> str:
        """Remove."""
        ran.append(path)
        return "gone"

    async with serving(Service()) as service:
        asked = handler(service)
    agent = await build_agent(
        model=ScriptedModel([calls("rm", path="/a"), says("ok")]),
        extra_tools=[rm],
        approval=ApprovalPolicy(tools=["rm"], handler=asked),
    )

    result = await agent.ainvoke("go")

    [answer] = [message for message in result.messages if message.type == "tool"]
    assert answer.status == "error"
    assert "the approval handler failed (ConnectError)" in answer.content
    assert ran == []


async def test_a_service_that_never_decides_runs_out_of_time() -> None:
    async def rm(path: str) -> str:
        """Remove."""
        raise AssertionError("it ran")

    class Waiting(Service):
        async def handle(self, request: web.Request) -> web.Response:
            self.seen.append((request.method, {}, b"", ""))
            return web.Response(status=202)

    async with serving(Waiting()) as service:
        agent = await build_agent(
            model=ScriptedModel([calls("rm", path="/a"), says("ok")]),
            extra_tools=[rm],
            approval=ApprovalPolicy(tools=["rm"], handler=handler(service, poll_url=service.url), timeout=0.2),
        )

        result = await agent.ainvoke("go")

    [answer] = [message for message in result.messages if message.type == "tool"]
    assert "Nobody approved this call in time" in answer.content
    assert len(service.seen) > 2
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_signature_is_bound_to_its_time_and_nonces_are_forgotten_when_they_are_old() -> None:
    now = [1000.0]
    checker = SignatureChecker("k", max_age=60, clock=lambda: now[0])
    headers = signed_headers("k", b"x", at=1000)

    assert checker.problem({}, b"x") == "it is not signed"
    assert checker.problem({**headers, "X-Approval-Timestamp": "1001"}, b"x") == "its signature is wrong"
    assert checker.problem({key.lower(): value for key, value in headers.items()}, b"x") == ""
    now[0] = 1060.0
    assert checker.problem(headers, b"x") == "it was sent before"
    now[0] = 1061.0
    assert "more than 60 seconds old" in checker.problem(headers, b"x")
    assert checker.problem(signed_headers("k", b"y", at=1200), b"y").startswith("it is more than 60 seconds old")
    assert checker.problem(signed_headers("k", b"z", at=1061), b"z") == ""
    assert len(checker._seen) == 1


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    async def addresses_of(host: str, port: int) -> list[Any]:
        looked.append(host)
        # Nobody listens at the first one.
        return [ip_address("127.0.0.2"), ip_address("127.0.0.1")] if len(looked) == 1 else []

    monkeypatch.setattr("graphwright.approval.webhook.addresses_of", addresses_of)
    async with serving(Service(reply(approved=True))) as service:
        port = service.url.rpartition(":")[2]
        asked = WebhookApprovalHandler(f"http://review.test:{port}/ask", secret=SECRET, allow_private_networks=True)

        decision = await asked.request_approval(asking())

    assert decision.approved is True
    assert looked == ["review.test"]
    assert service.seen[0][1]["Host"] == f"review.test:{port}"


async def test_a_name_with_one_private_address_among_public_ones_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def addresses_of(host: str, port: int) -> list[Any]:
        return [ip_address("8.8.8.8"), ip_address("10.0.0.1")]

    monkeypatch.setattr("graphwright.approval.webhook.addresses_of", addresses_of)

    with pytest.raises(GraphwrightError, match="private or reserved network"):
        await WebhookApprovalHandler("https://review.test/", secret=SECRET).request_approval(asking())


async def test_a_name_that_is_unknown_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def addresses_of(host: str, port: int) -> list[Any]:
        raise OSError("unknown")

    monkeypatch.setattr("graphwright.approval.webhook.addresses_of", addresses_of)

    with pytest.raises(GraphwrightError, match=r"there is no host 'review\.test'"):
        await WebhookApprovalHandler("https://review.test/", secret=SECRET).request_approval(asking())


async def test_a_client_of_ones_own_is_used_and_left_open() -> None:
    import httpx

    async with (
        serving(Service(reply(approved=True), reply(approved=False))) as service,
        httpx.AsyncClient(headers={"X-Own": "yes"}) as client,
    ):
        asked = handler(service, http_client=client)
        decisions = [(await asked.request_approval(asking())).approved for _ in range(2)]
        assert client.is_closed is False

    assert decisions == [True, False]
    assert [headers["X-Own"] for _, headers, _, _ in service.seen] == ["yes", "yes"]
