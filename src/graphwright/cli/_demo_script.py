"""The script that plays the model in the demo: it reads the tools' results, and computes each step from them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from graphwright.messages import text_of
from graphwright.testing import Step, call, calls_many, says

__all__ = ["next_step"]

_AT_ONCE = 5


@dataclass(frozen=True, slots=True)
class _Done:
    """One tool call of the conversation, with its result."""

    name: str

    args: dict[str, Any]

    success: bool

    content: str

    @property
    def data(self) -> dict[str, Any]:
        """The result as the tool returned it."""
        value: dict[str, Any] = json.loads(self.content)
        return value


def next_step(messages: list[Any]) -> Step:
    """Return what to do next, going by what the tools have answered so far."""
    done = _done(messages)
    listings = _of(done, "list_files")
    if not listings:
        return _ask(call("list_files", by_size=True, limit=30), text="First I look at what is here, largest first.")
    if not listings[0].success:
        return _say(f"I could not list the files: {listings[0].content}")
    listing = listings[0].data
    if not listing["files"]:
        return _say("There are no files to look at in this folder.")
    counts = _of(done, "count_lines")
    counted = [count.data for count in counts if count.success]
    rest = [file["path"] for file in listing["files"]][len(counts) :]
    if not counted:
        return _count(rest[:_AT_ONCE], again=bool(counts)) if rest else _say(_only_binary(listing, len(counts)))
    longest = max(counted, key=lambda count: count["lines"])
    return _look_closer(done, longest) or _say(_answer(done, listing, counted, longest))


def _count(paths: list[str], *, again: bool) -> Step:
    text = "Those are no text files, so I try the next ones." if again else "I count the lines of the largest ones."
    return _ask(*(call("count_lines", path=path) for path in paths), text=text)


def _look_closer(done: list[_Done], longest: dict[str, Any]) -> Step | None:
    if _of(done, "read_file"):
        return None
    path, subject = longest["path"], _subject(longest["path"])
    return _ask(
        call("read_file", path=path, lines=12),
        call("search_text", text=subject, limit=200),
        text=f"The longest is {path}. I read how it begins, and look for {subject!r} in all files.",
    )


def _answer(done: list[_Done], listing: dict[str, Any], counted: list[dict[str, Any]], longest: dict[str, Any]) -> str:
    path, subject = longest["path"], _subject(longest["path"])
    parts = [
        f"The folder holds {listing['total_files']:,} files with {listing['total_bytes']:,} bytes in all.",
        f"Of the {len(counted)} largest text files, {path} is the longest, with {longest['lines']:,} lines."
        if len(counted) > 1
        else f"The text file that I looked at is {path}, with {longest['lines']:,} lines.",
    ]
    reading = _of(done, "read_file")[0]
    purpose = _first_words(reading.content) if reading.success else ""
    parts.append(f"It begins with: {purpose}" if purpose else "How it begins does not say what it is for.")
    search = _of(done, "search_text")[0]
    if not search.success:
        parts.append(f"The search for {subject!r} failed: {search.content}")
        return "\n".join(parts)
    found = search.data
    others = [name for name in found["files"] if name != path]
    shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    parts.append(
        f"{subject!r} is on {found['total_matches']:,} lines of {found['total_files']:,} files; "
        + (f"beside itself these are {shown}." if others else "no other file mentions it.")
    )
    return "\n".join(parts)


def _only_binary(listing: dict[str, Any], tried: int) -> str:
    return (
        f"The folder holds {listing['total_files']:,} files with {listing['total_bytes']:,} bytes in all. "
        f"None of the {tried} largest is a text file, so there is nothing to read."
    )


def _subject(path: str) -> str:
    """Return the word under which other files would mention a file."""
    place = PurePosixPath(path)
    stem = place.name.split(".")[0].strip("_")
    if stem in ("init", "main", "index", "") and place.parent.name:
        return place.parent.name
    return stem if len(stem) >= 3 else place.name


def _first_words(content: str) -> str:
    """Return the first line of a text that reads like a sentence or a title."""
    for line in content.splitlines()[:-1]:
        words = line.strip().strip("\"'#/*<!->;= \t")
        if sum(letter.isalpha() for letter in words) >= 3:
            return words
    return ""


def _done(messages: list[Any]) -> list[_Done]:
    asked = {made["id"]: made for message in messages if message.type == "ai" for made in message.tool_calls}
    return [
        _Done(asked[message.tool_call_id]["name"], asked[message.tool_call_id]["args"], success, text_of(message))
        for message in messages
        if message.type == "tool"
        for success in [message.status == "success"]
    ]


def _of(done: list[_Done], name: str) -> list[_Done]:
    return [entry for entry in done if entry.name == name]


def _ask(*wanted: Any, text: str) -> Step:
    # A script has used no tokens, so it reports none.
    return calls_many(*wanted, text=text, usage=None)


def _say(text: str) -> Step:
    return says(text, usage=None)
