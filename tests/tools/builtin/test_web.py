from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from graphwright.exceptions import ConfigurationError, MissingExtraError
from graphwright.tools.builtin import CallApiTool, FetchWebPageTool, SearchWebTool

LOCAL = ["127.0.0.1"]


@dataclass
class Site:
    """A web server on 127.0.0.1 that keeps what it was asked."""

    port: int = 0
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    answers: dict[str, Callable[[web.Request], Any]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def answer(self, request: web.Request) -> Any:
        headers = {key.lower(): value for key, value in request.headers.items()}
        self.asked.append((request.method, request.path_qs, headers, await request.read()))
        made = self.answers[request.path](request)
        return await made if asyncio.iscoroutine(made) else made


@pytest.fixture
async def sites() -> AsyncIterator[Callable[[], Any]]:
    async with AsyncExitStack() as stack:

        async def start() -> Site:
            site = Site()
            app = web.Application()
            app.router.add_route("*", "/{rest:.*}", site.answer)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            listener = web.TCPSite(runner, "127.0.0.1", 0)
            await listener.start()
            site.port = runner.addresses[0][1]
            return site

        yield start


@pytest.fixture
async def site(sites: Any) -> Site:
    return await sites()  # type: ignore[no-any-return]


def redirect(status: int, location: str) -> Callable[[web.Request], web.Response]:
    return lambda _: web.Response(status=status, headers={"Location": location})


def names(monkeypatch: pytest.MonkeyPatch, table: dict[str, list[str]]) -> list[str]:
    """Let names stand for addresses, in place of DNS, and return the list of what was looked up."""
    looked: list[str] = []

    def lookup(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        looked.append(name)
        if name not in table:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        kinds = [(socket.AF_INET6 if ":" in address else socket.AF_INET, address) for address in table[name]]
        return [(kind, socket.SOCK_STREAM, 6, "", (address, port)) for kind, address in kinds]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return looked


CLOSED = """
    127.0.0.1 127.9.9.9 0.0.0.0 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 100.127.255.254 192.0.0.8
    192.0.2.1 198.18.0.1 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 ::1 :: fe80::1 fc00::1 fd00:ec2::254 ff02::1
    ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1::
    2001:0:4136:e378:8000:63bf:3fff:fdd2 fec0::1 2001:db8::1 192.88.99.1
"""


@pytest.mark.parametrize("address", CLOSED.split())
async def test_no_private_or_reserved_address_is_asked(address: str, use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, {"inside.test": [address]})

    error = await use.error(FetchWebPageTool(), url="http://inside.test/")

    assert error == (
        "'inside.test' leads to a private or reserved network, which this tool may not reach; "
        "use an address of the public internet"
    )


async def test_one_private_address_among_public_ones_closes_the_name(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, {"mixed.test": ["93.184.216.34", "10.0.0.1"]})

    assert "private or reserved" in await use.error(CallApiTool(), url="http://mixed.test/")


ODD = ["http://2130706433/", "http://0x7f000001/", "http://127.1/", "http://[::ffff:7f00:1]/"]


@pytest.mark.parametrize("url", ODD)
async def test_odd_ways_to_write_an_address_are_seen_through(
    url: str, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # These are no names, so the system reads them without a network; the suite's own check would not know them.
    import _socket

    monkeypatch.setattr(socket, "getaddrinfo", _socket.getaddrinfo)

    assert "private or reserved" in await use.error(FetchWebPageTool(), url=url)


async def test_a_public_address_is_what_is_connected_to(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads elsewhere when it is asked again cannot move the connection."""
    looked = names(monkeypatch, {"rebind.test": ["93.184.216.34"]})
    reached: list[Any] = []

    def connect(_: socket.socket, address: Any) -> None:
        reached.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", connect)

    error = await use.error(FetchWebPageTool(), url="http://rebind.test/")

    assert error == "'http://rebind.test/' gave no answer: ConnectError"
    assert looked == ["rebind.test"]
    assert {address[:2] for address in reached} == {("93.184.216.34", 80)}


async def test_a_name_is_looked_up_once_and_stays_in_the_host_header(
    site: Site, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = names(monkeypatch, {"api.test": ["127.0.0.1"]})
    site.answers["/x"] = lambda _: web.json_response({"ok": True})
    tool = CallApiTool(allow_hosts=["api.test"])

    found = await use.data(tool, url=f"http://api.test:{site.port}/x", params={"q": "a b"})

    assert found["body"] == {"ok": True}
    assert looked == ["api.test"]
    assert site.asked[0][1] == "/x?q=a+b"
    assert site.asked[0][2]["host"] == f"api.test:{site.port}"


def certificate(folder: Path, name: str) -> tuple[str, str]:
    """Make a certificate that is its own authority, and return the paths of it and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed; install openssl")
    cert, key = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
    made = [
        openssl,
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    made += ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-keyout", key, "-out", cert]
    subprocess.run(made, check=True, capture_output=True)
    return cert, key


@pytest.mark.parametrize(("host", "answered"), [("api.test", True), ("other.test", False)])
async def test_a_certificate_is_checked_against_the_name_and_not_the_address(
    host: str, answered: bool, tmp_path: Path, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate(tmp_path, "api.test")
    names(monkeypatch, {"api.test": ["127.0.0.1"], "other.test": ["127.0.0.1"]})
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(cert, key)
    asked_for: list[str | None] = []
    served.sni_callback = lambda _, name, __: asked_for.append(name)  # type: ignore[assignment]
    app = web.Application()
    app.router.add_get("/", _done)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=served).start()
    tool = FetchWebPageTool(allow_private=True, tls_context=ssl.create_default_context(cafile=cert))
    result = await use.result(tool, url=f"https://{host}:{runner.addresses[0][1]}/")
    await runner.cleanup()

    assert result.success is answered
    assert asked_for == [host]


async def _done(_: web.Request) -> web.Response:
    return web.Response(text="done")


async def test_a_redirect_to_a_private_network_is_refused(
    site: Site, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names(monkeypatch, {"127.0.0.1": ["127.0.0.1"], "169.254.169.254": ["169.254.169.254"]})
    site.answers["/"] = redirect(302, "http://169.254.169.254/latest/meta-data")

    error = await use.error(FetchWebPageTool(allow_hosts=LOCAL), url=site.url)

    assert "'169.254.169.254' leads to a private or reserved network" in error


async def test_secrets_do_not_follow_a_redirect_to_another_origin(sites: Any, use: Any) -> None:
    first, second = await sites(), await sites()
    first.answers["/here"] = redirect(302, "/again")
    first.answers["/again"] = lambda _: web.Response(
        status=302, headers={"Location": f"{second.url}/there", "Set-Cookie": "session=1"}
    )
    second.answers["/there"] = lambda _: web.Response(text="done")
    secrets = {"Authorization": "Bearer 1", "Cookie": "a=1", "X-Api-Key": "k"}
    tool = CallApiTool(allow_hosts=LOCAL, credentials={first.url: {"X-Developer": "d"}})

    found = await use.data(tool, url=f"{first.url}/here", headers={**secrets, "Accept-Language": "de"})

    assert found["body"] == "done"
    sent = {"authorization": "Bearer 1", "cookie": "a=1", "x-api-key": "k", "x-developer": "d"}
    for asked in first.asked:
        assert {key: asked[2].get(key) for key in sent} == sent
    (asked,) = second.asked
    assert asked[2].keys() & sent.keys() == set()
    assert asked[2]["accept-language"] == "de"


async def test_a_stranger_cannot_redirect_into_an_origin_with_its_credentials(sites: Any, use: Any) -> None:
    stranger, api = await sites(), await sites()
    stranger.answers["/"] = redirect(302, f"{api.url}/delete-all")
    api.answers["/delete-all"] = lambda _: web.Response(text="who are you?")
    tool = CallApiTool(allow_hosts=LOCAL, credentials={api.url: {"Authorization": "Bearer mine"}})

    await use(tool, url=stranger.url)

    assert "authorization" not in api.asked[0][2]


async def test_developer_credentials_win_over_headers_of_the_model(site: Site, use: Any) -> None:
    site.answers["/"] = lambda _: web.Response(text="x")
    tool = CallApiTool(allow_hosts=LOCAL, credentials={site.url: {"Authorization": "Bearer mine"}})

    await use(tool, url=site.url, headers={"authorization": "Bearer model"})

    assert site.asked[0][2]["authorization"] == "Bearer mine"
    assert "mine" not in repr(tool)


@pytest.mark.parametrize(
    ("status", "method", "body"), [(301, "GET", b""), (303, "GET", b""), (307, "POST", b"x"), (308, "POST", b"x")]
)
async def test_a_redirect_changes_the_method_as_the_web_does(
    status: int, method: str, body: bytes, site: Site, use: Any
) -> None:
    site.answers["/"] = redirect(status, "/next")
    site.answers["/next"] = lambda _: web.Response(text="ok")

    await use(CallApiTool(allow_hosts=LOCAL), url=site.url, method="POST", body="x")

    assert (site.asked[1][0], site.asked[1][3]) == (method, body)


async def test_a_body_is_not_sent_on_to_another_origin(sites: Any, use: Any) -> None:
    first, second = await sites(), await sites()
    first.answers["/"] = redirect(307, f"{second.url}/")

    error = await use.error(CallApiTool(allow_hosts=LOCAL), url=first.url, method="POST", json={"secret": 1})

    assert "the body was not sent there" in error
    assert second.asked == []


async def test_redirects_end(site: Site, use: Any) -> None:
    site.answers["/"] = redirect(302, "/")

    assert "redirects more than 5 times" in await use.error(FetchWebPageTool(allow_hosts=LOCAL), url=site.url)
    assert len(site.asked) == 6


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("file:///etc/passwd", "not of the web"),
        ("ftp://example.com/", "not of the web"),
        ("gopher://127.0.0.1:6379/_x", "not of the web"),
        ("example.com", "not of the web"),
        ("http://", "not of the web"),
        ("http://user:secret@example.com/", "user name or password"),
        ("http://exa mple.com:port/", "no URL"),
    ],
)
async def test_a_url_that_is_not_of_the_web_is_refused(url: str, told: str, use: Any) -> None:
    assert told in await use.error(CallApiTool(), url=url)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://a:b@127.0.0.1/", "http://[::bad/"])
async def test_a_redirect_is_checked_like_any_url(location: str, site: Site, use: Any) -> None:
    site.answers["/"] = redirect(302, location)

    await use.error(FetchWebPageTool(allow_hosts=LOCAL), url=site.url)

    assert len(site.asked) == 1


@pytest.mark.parametrize(
    "headers", [{"Host": "x"}, {"Transfer-Encoding": "chunked"}, {"X-A": "1\r\nHost: x"}, {"X\n": "1"}, {"X": "ü"}]
)
async def test_headers_that_change_the_request_itself_are_refused(
    headers: dict[str, str], site: Site, use: Any
) -> None:
    error = await use.error(CallApiTool(allow_hosts=LOCAL), url=site.url, headers=headers)

    assert error.startswith("header ")
    assert site.asked == []


async def test_only_the_hosts_that_were_named_are_asked(site: Site, use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = names(monkeypatch, {"127.0.0.1": ["127.0.0.1"]})
    site.answers["/"] = lambda _: web.Response(text="ok")
    here = f"127.0.0.1:{site.port}"
    tool = CallApiTool(allow_private=True, only_hosts=[here])

    assert (await use.data(tool, url=site.url))["body"] == "ok"
    assert await use.error(tool, url="http://leak.test/?secret=1") == (
        f"'leak.test' may not be asked by this tool; there are {here}"
    )
    assert looked == ["127.0.0.1"], "not even the name is looked up, which would tell it to a stranger"


def gzipped(data: bytes) -> Callable[[web.Request], web.Response]:
    return lambda _: web.Response(body=data, headers={"Content-Encoding": "gzip", "Content-Type": "text/plain"})


async def test_a_compressed_bomb_is_unpacked_no_further_than_the_limit(
    site: Site, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.answers["/"] = gzipped(_bomb())
    made: list[int] = []
    real = zlib.decompressobj

    class Watched:
        def __init__(self, *args: Any) -> None:
            self.inner = real(*args)

        @property
        def eof(self) -> bool:
            return self.inner.eof

        def decompress(self, data: bytes, most: int) -> bytes:
            out = self.inner.decompress(data, most)
            made.append(len(out))
            return out

    monkeypatch.setattr("graphwright.tools.builtin._fetch.zlib.decompressobj", Watched)

    found = await use.data(CallApiTool(allow_hosts=LOCAL, max_bytes=1000, max_chars=50), url=site.url)

    assert found["truncated"] == "the body is longer than 1000 bytes; only its beginning was read"
    assert sum(made) == 1001


def _bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    block = b"a" * 1_000_000
    return b"".join(packer.compress(block) for _ in range(20)) + packer.flush()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw deflate"])
async def test_compressed_answers_are_read(coding: str, site: Site, use: Any) -> None:
    wbits = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS, "raw deflate": -zlib.MAX_WBITS}[coding]
    packer = zlib.compressobj(wbits=wbits)
    body = packer.compress(b"hello " * 100) + packer.flush()
    site.answers["/"] = lambda _: web.Response(
        body=body, headers={"Content-Encoding": coding.split()[-1], "Content-Type": "text/plain"}
    )

    assert await use(FetchWebPageTool(allow_hosts=LOCAL), url=site.url) == "hello " * 100


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "gzip"])
async def test_an_encoding_that_was_not_asked_for_or_is_a_lie_is_refused(coding: str, site: Site, use: Any) -> None:
    site.answers["/"] = lambda _: web.Response(body=b"not packed", headers={"Content-Encoding": coding})

    assert "encoded as" in (error := await use.error(FetchWebPageTool(allow_hosts=LOCAL), url=site.url)) or (
        error == "the answer says that it is gzip, and it is not"
    )


async def test_a_server_that_never_ends_is_left(site: Site, use: Any) -> None:
    gone = asyncio.Event()

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x")
                await asyncio.sleep(0.01)
        except (ConnectionError, asyncio.CancelledError):
            gone.set()
            raise

    site.answers["/"] = drip

    error = await use.error(FetchWebPageTool(allow_hosts=LOCAL, request_timeout=0.2), url=site.url)

    assert error == f"{site.url!r} did not answer within 0.2 s"
    await asyncio.wait_for(gone.wait(), 5)


async def test_an_error_status_is_an_answer_of_an_api_and_an_error_of_a_page(site: Site, use: Any) -> None:
    site.answers["/"] = lambda _: web.json_response({"error": "no"}, status=404)

    found = await use.data(CallApiTool(allow_hosts=LOCAL), url=site.url)

    assert (found["status"], found["body"]) == (404, {"error": "no"})
    assert "status 404" in await use.error(FetchWebPageTool(allow_hosts=LOCAL), url=site.url)


async def test_bodies_are_sent_as_they_were_given(site: Site, use: Any) -> None:
    site.answers["/"] = lambda _: web.Response(text="ok")
    tool = CallApiTool(allow_hosts=LOCAL)

    await use(tool, url=site.url, method="PUT", json={"a": [1]})
    await use(tool, url=site.url, method="POST", form={"a": "b c"})

    assert [(asked[0], asked[2]["content-type"], asked[3]) for asked in site.asked] == [
        ("PUT", "application/json", b'{"a": [1]}'),
        ("POST", "application/x-www-form-urlencoded", b"a=b+c"),
    ]
    assert "more than one" in await use.error(tool, url=site.url, method="POST", json={}, body="")


PAGE = """<!doctype html><html><head><title>The
title</title><style>p {x}</style><script>var a = "<p>no</p>";</script></head><body>
<h1>Head &amp; line</h1><p>First
paragraph</p><ul><li>one<li>two</ul><script>if (1 < 2) {}</script><template><p>hidden</p></template>
<table><tr><td>a</td><td>b</td></tr></table>end</body></html>"""


async def test_a_page_is_read_as_text(site: Site, use: Any) -> None:
    site.answers["/"] = lambda _: web.Response(text=PAGE, content_type="text/html")

    assert await use(FetchWebPageTool(allow_hosts=LOCAL), url=site.url) == (
        "The title\n\n# Head & line\n\nFirst paragraph\n\n- one\n- two\n\na b\n\nend"
    )


MADE_TO_HURT = ["<", "<a ", "</", "<!--", "<!", "<?", "<a b='", "&#", "<script>", "<![CDATA[", "<div>", "<svg></b>"]
MADE_TO_HURT += ["<title>", '<a ">', "</script", "<a b='\">"]


@pytest.mark.parametrize("piece", MADE_TO_HURT)
async def test_a_page_that_is_made_to_hurt_is_read_in_no_time(piece: str, site: Site, use: Any) -> None:
    site.answers["/"] = lambda _: web.Response(text=piece * (400_000 // len(piece)), content_type="text/html")
    began = time.monotonic()

    await use(FetchWebPageTool(allow_hosts=LOCAL), url=site.url)

    assert time.monotonic() - began < 5


async def test_a_picture_is_described_and_an_unknown_charset_does_no_harm(site: Site, use: Any) -> None:
    site.answers["/p"] = lambda _: web.Response(body=b"\x89PNG", content_type="image/png")
    site.answers["/c"] = lambda _: web.Response(body=b"text", headers={"Content-Type": "text/plain; charset=nope"})
    tool = FetchWebPageTool(allow_hosts=LOCAL)

    assert await use(tool, url=f"{site.url}/p") == "[4 bytes of image/png; not shown]"
    assert await use(tool, url=f"{site.url}/c") == "text"


async def test_a_proxy_of_the_environment_is_not_used(site: Site, use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    site.answers["/"] = lambda _: web.Response(text="direct")

    assert await use(FetchWebPageTool(allow_hosts=LOCAL), url=site.url) == "direct"


def test_web_tools_are_told_to_bring_what_strangers_wrote() -> None:
    tools = [CallApiTool(), FetchWebPageTool(), SearchWebTool()]

    assert [(tool.name, tool.risk_level, tool.untrusted) for tool in tools] == [
        ("call_api", 1, True),
        ("fetch_web_page", 1, True),
        ("search_web", 1, True),
    ]


@pytest.mark.parametrize(
    "options", [{"allow_hosts": "x"}, {"only_hosts": ["http://x/"]}, {"max_bytes": 0}, {"request_timeout": 0}]
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        CallApiTool(**options)
    with pytest.raises(ConfigurationError, match="credentials names"):
        CallApiTool(credentials={"api.test": {}})


def test_without_its_package_the_tool_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphwright.tools.builtin._fetch.is_installed", lambda _: False)

    with pytest.raises(MissingExtraError, match=r"graphwright\[http\]"):
        CallApiTool()


async def test_a_search_without_a_provider_says_how_to_give_one(use: Any) -> None:
    assert "SearchWebTool(search=function)" in await use.error(SearchWebTool(), query="x")
    with pytest.raises(ConfigurationError, match="give a function"):
        SearchWebTool(search="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_search_shows_what_its_provider_found(is_async: bool, use: Any) -> None:
    asked: list[tuple[str, int]] = []

    def search(query: str, limit: int) -> Any:
        asked.append((query, limit))
        return [{"title": "A", "url": "http://a/", "snippet": "about"}, {"url": "http://b/"}, {"url": "http://c/"}]

    async def search_async(query: str, limit: int) -> Any:
        return search(query, limit)

    tool = SearchWebTool(search=search_async if is_async else search, max_results=2)

    assert await use(tool, query="cats", limit=50) == ("1. A\n   http://a/\n   about\n2. (no title)\n   http://b/")
    assert asked == [("cats", 2)]
