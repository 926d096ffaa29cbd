"""Tools that ask web servers: call an API, read a page, search."""

from __future__ import annotations

import json as json_module
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal
from urllib.parse import urlencode

from graphwright._internal.aio import call_maybe_async
from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import ConfigurationError, ToolError
from graphwright.tools.builtin._base import BuiltinTool, checked_count, cut
from graphwright.tools.builtin._fetch import Answer, Fetcher, Request
from graphwright.tools.builtin._html import page_text

__all__ = ["CallApiTool", "FetchWebPageTool", "SearchWebTool"]

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

_TOLD_HEADERS = ("content-type", "etag", "last-modified", "link", "location", "retry-after")
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/javascript", "application/x-ndjson")


class CallApiTool(BuiltinTool):
    """Send one HTTP request to a public address and return its answer.

    Private networks are refused, at every redirect too; `allow_hosts` (or `allow_private`) opens them and
    `only_hosts` closes everything else. `credentials` maps an origin, such as "https://api.example.com", to headers
    that are sent to it alone and that no model sees. Needs the extra `http`.
    """

    tool_name = "call_api"
    risk_level = 1
    untrusted = True

    def __init__(self, *, max_chars: int = 50_000, name: str | None = None, **options: Any) -> None:
        self._max_chars = checked_count(max_chars, "max_chars")
        super().__init__(name=name)
        self._fetcher = Fetcher(what=type(self).__name__, **options)

    async def call(
        self,
        url: str,
        method: Method = "GET",
        headers: dict[str, str] | None = None,
        params: dict[str, str | int | float | bool] | None = None,
        json: Any = None,
        form: dict[str, str] | None = None,
        body: str | None = None,
    ) -> dict[str, Any]:
        """Send an HTTP request and return its status, headers and body.

        Args:
            url: Where to send it, beginning with https:// or http://.
            headers: Headers to send.
            params: What to add to the query of the URL.
            json: Data to send as JSON; give json, form or body, not two of them.
            form: Fields to send as a form.
            body: Text to send as it is.
        """
        content, kind = _body(json, form, body)
        sent = {key.lower(): value for key, value in (headers or {}).items()}
        if kind is not None:
            sent.setdefault("content-type", kind)
        answer = await self._fetcher.fetch(Request(method, url, sent, params, content))
        told = {name: answer.headers[name] for name in _TOLD_HEADERS if name in answer.headers}
        result: dict[str, Any] = {"status": answer.status, "url": answer.url, "headers": told}
        result["body"] = self._shown_body(answer)
        if answer.truncated:
            result["truncated"] = f"the body is longer than {len(answer.body)} bytes; only its beginning was read"
        return result

    def _shown_body(self, answer: Answer) -> Any:
        text = _text_of(answer)
        if "json" in answer.headers.get("content-type", "") and len(text) <= self._max_chars:
            try:
                return json_module.loads(text)
            except (ValueError, RecursionError):
                return text
        return cut(text, self._max_chars)


def _body(json: Any, form: dict[str, str] | None, body: str | None) -> tuple[bytes | None, str | None]:
    if sum(entry is not None for entry in (json, form, body)) > 1:
        raise ToolError("more than one of json, form and body is given; give one")
    if json is not None:
        return json_module.dumps(json).encode(), "application/json"
    if form is not None:
        return urlencode(form).encode(), "application/x-www-form-urlencoded"
    return (None, None) if body is None else (body.encode(errors="replace"), "text/plain; charset=utf-8")


def _text_of(answer: Answer) -> str:
    kind = answer.headers.get("content-type", "").split(";")[0].strip().lower()
    is_text = kind.startswith(_TEXT_TYPES) or kind.endswith(("+json", "+xml"))
    if not is_text and (kind or b"\0" in answer.body[:8192]):
        if not answer.body:
            return ""
        return f"[{len(answer.body)} bytes of {kind or 'unknown type'}; not shown]"
    try:
        return answer.body.decode(answer.encoding, errors="replace")
    except LookupError:  # a charset that nobody knows
        return answer.body.decode(errors="replace")


class FetchWebPageTool(BuiltinTool):
    """Read a page of the public web as text; the same limits as `CallApiTool` hold. Needs the extra `http`."""

    tool_name = "fetch_web_page"
    risk_level = 1
    untrusted = True
    idempotent = True

    def __init__(self, *, max_chars: int = 20_000, name: str | None = None, **options: Any) -> None:
        self._max_chars = checked_count(max_chars, "max_chars")
        super().__init__(name=name)
        self._fetcher = Fetcher(what=type(self).__name__, **options)

    async def call(self, url: str) -> str:
        """Read a web page as text, without markup.

        Args:
            url: The address of the page, beginning with https:// or http://.
        """
        answer = await self._fetcher.fetch(Request("GET", url, {"accept": "text/html, text/plain;q=0.9, */*;q=0.1"}))
        if answer.status >= 400:
            raise ToolError(f"{answer.url!r} answered with status {answer.status}; check the address")
        kind = answer.headers.get("content-type", "")
        text = _text_of(answer)
        if "html" in kind or (not kind and "<html" in text[:1000].lower()):
            # Parsing a large page takes long enough to hold up everybody else on the event loop.
            text = await run_in_thread(page_text, text)
        if answer.truncated:
            text = f"{text}\n[the page is longer than {len(answer.body)} bytes; only its beginning was read]"
        return cut(text, self._max_chars) or "(no text)"


Found = list[Mapping[str, Any]] | str


class SearchWebTool(BuiltinTool):
    """Search the web through a function of yours: `search(query, limit)`, sync or async.

    It returns text, or a list of mappings with `title`, `url` and `snippet`. Without one, a call is refused.
    """

    tool_name = "search_web"
    risk_level = 1
    untrusted = True
    idempotent = True

    def __init__(
        self,
        *,
        search: Callable[[str, int], Found | Awaitable[Found]] | None = None,
        max_results: int = 10,
        max_chars: int = 20_000,
        name: str | None = None,
    ) -> None:
        if search is not None and not callable(search):
            raise ConfigurationError(f"search is {search!r}; give a function (query, limit) -> results")
        self._max_results = checked_count(max_results, "max_results")
        self._max_chars = checked_count(max_chars, "max_chars")
        super().__init__(name=name)
        self._search = search

    async def call(self, query: str, limit: int | None = None) -> str:
        """Search the web and return titles, addresses and excerpts.

        Args:
            query: What to search for.
            limit: Most results to return.
        """
        if self._search is None:
            raise ToolError(
                f"{self.name!r} has no search provider; whoever builds the agent gives one with "
                "SearchWebTool(search=function), where function(query, limit) returns the results"
            )
        wanted = max(1, min(limit or self._max_results, self._max_results))
        # A plain function may wait for the network, so it is called in a thread; what it returns may be awaitable.
        found = await call_maybe_async(await run_in_thread(_caller, self._search, query, wanted))
        if isinstance(found, str):
            return cut(found, self._max_chars) or "no results"
        lines = [_result_text(number, entry) for number, entry in enumerate(list(found)[:wanted], 1)]
        return cut("\n".join(lines), self._max_chars) or "no results"


def _caller(search: Callable[[str, int], Any], query: str, limit: int) -> Callable[[], Any]:
    value = search(query, limit)
    return lambda: value


def _result_text(number: int, entry: Mapping[str, Any]) -> str:
    text = f"{number}. {entry.get('title') or '(no title)'}\n   {entry.get('url', '')}"
    return f"{text}\n   {entry['snippet']}" if entry.get("snippet") else text
