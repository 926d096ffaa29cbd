"""Read the text of a web page, without its scripts, styles and markup."""

from __future__ import annotations

import re
from html import unescape

_SKIPPED = frozenset({"template", "svg", "canvas", "object"})
# Inside of these, nothing is markup but their own end.
_RAW = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "noscript", "iframe")}
_MARKS = {"li": "\n- ", "td": "  ", "th": "  "}
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)")
_REST_OF_TAG = re.compile(r"""(?:[^>"']|"[^"]*+"|'[^']*+')*+>""")
_BLOCK_NAMES = """
    address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6
    header hr li main nav ol option p pre section summary table tbody tfoot thead tr ul
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


def page_text(html: str) -> str:
    """Return the title and the text of a page: a line a block, headings and list items marked."""
    reader = _Reader()
    reader.feed(html)
    lines = [re.sub(r"[^\S\n]+", " ", line).strip() for line in "".join(reader.parts).split("\n")]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    title = " ".join("".join(reader.title).split())
    return f"{title}\n\n{text}" if title and not text.startswith(f"# {title}") else text


class _Reader:
    """Walks over a page once, from left to right.

    The parser of the standard library takes minutes for some small pages that are made to hurt; here every search
    either moves on past what it looked at, or is the last one of its kind.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.title: list[str] = []
        self._in_title = False
        self._skipped = ""
        self._depth = 0
        self._quotes_close = True

    def feed(self, html: str) -> None:
        """Read the whole page."""
        at = 0
        while (begin := html.find("<", at)) >= 0:
            self._text(html[at:begin])
            at = self._markup(html, begin)
            if at < 0:
                return
        self._text(html[at:])

    def _markup(self, html: str, begin: int) -> int:
        """Return where to go on, or -1 where something that was begun has no end."""
        if html.startswith("<!--", begin):
            end = html.find("-->", begin + 4)
            return end + 3 if end >= 0 else -1
        if html.startswith(("<!", "<?"), begin):
            return html.find(">", begin) + 1 or -1
        tag = _TAG.match(html, begin)
        if tag is None:
            self._text("<")
            return begin + 1
        end = self._end_of_tag(html, tag.end())
        if end < 0:
            return -1
        name = tag[2].lower()
        if tag[1]:
            self._close(name)
        elif name in _RAW:
            closing = _RAW[name].search(html, end)
            return closing.start() if closing else -1
        else:
            self._open(name)
        return end

    def _end_of_tag(self, html: str, at: int) -> int:
        if self._quotes_close:
            found = _REST_OF_TAG.match(html, at)
            if found:
                return found.end()
            # Some quote is open up to the end of the page, so from here on they are not looked at any more.
            self._quotes_close = False
        return html.find(">", at) + 1 or -1

    def _open(self, name: str) -> None:
        if self._skipped:
            self._depth += name == self._skipped
        elif name in _SKIPPED:
            self._skipped, self._depth = name, 1
        elif name == "title":
            self._in_title = True
        elif name in _HEADINGS:
            self.parts.append(f"\n\n{_HEADINGS[name]}")
        elif name in _MARKS:
            self.parts.append(_MARKS[name])
        elif name in _BLOCKS:
            self.parts.append("\n")

    def _close(self, name: str) -> None:
        if self._skipped:
            self._depth -= name == self._skipped
            if not self._depth:
                self._skipped = ""
        elif name == "title":
            self._in_title = False
        elif name in _BLOCKS:
            self.parts.append("\n")

    def _text(self, text: str) -> None:
        if not text or self._skipped:
            return
        # Line breaks of the source are spaces; those of blocks are put in above.
        (self.title if self._in_title else self.parts).append(unescape(text).replace("\n", " "))
