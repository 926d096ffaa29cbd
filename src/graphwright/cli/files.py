"""Tools that read the files of one folder and cannot leave it or change it."""

from __future__ import annotations

import os
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, BinaryIO

from graphwright.cli._folder import FolderFile, ReadableFolder
from graphwright.exceptions import ToolError

__all__ = ["file_tools"]

_MOST_LISTED = 500
_MOST_MATCHES = 200
_MOST_LINES = 1000
_MOST_CHARS = 20_000
_LINE_CHARS = 1000
_BLOCK = 1 << 16
_READ_BYTES = 256 << 20
"""Most bytes that one call reads."""
_SEARCHED_BYTES = 5 << 20
"""Largest file that is searched."""


def file_tools(root: str | os.PathLike[str], *, hidden: bool = False) -> list[Callable[..., Any]]:
    """Return `list_files`, `read_file`, `search_text` and `count_lines` for the folder `root`.

    They read and never write. A path that leads out of the folder is refused, also by way of a link; so are names
    that begin with a dot, unless `hidden` is true. What they return is bounded, however large the files are.

    Raises:
        ConfigurationError: `root` is no folder.
    """
    tools = _FileTools(ReadableFolder(root, hidden=hidden))
    return [tools.list_files, tools.read_file, tools.search_text, tools.count_lines]


class _FileTools:
    def __init__(self, folder: ReadableFolder) -> None:
        self._folder = folder

    def list_files(
        self, path: str = ".", pattern: str = "*", by_size: bool = False, limit: int = 100
    ) -> dict[str, Any]:
        """List the files in a folder and in the folders below it.

        Args:
            path: The folder, relative to the root.
            pattern: Which files, for example '*.py' or 'docs/*.md'.
            by_size: Whether the largest come first, instead of the order of the names.
            limit: The most files to show.
        """
        files, complete = self._files(self._folder.resolve(path))
        files = [file for file in files if fnmatch(file.name, pattern) or fnmatch(file.path.name, pattern)]
        if by_size:
            files.sort(key=lambda file: (-file.size, file.name))
        shown = files[: _between(1, limit, _MOST_LISTED)]
        return {
            "total_files": len(files),
            "total_bytes": sum(file.size for file in files),
            "complete": complete,
            "left_out": len(files) - len(shown),
            "files": [{"path": file.name, "bytes": file.size} for file in shown],
        }

    def read_file(self, path: str, first_line: int = 1, lines: int = 200) -> str:
        """Read some lines of a text file.

        Args:
            path: The file, relative to the root.
            first_line: The number of the first line to read, from 1.
            lines: How many lines to read.
        """
        first = max(1, first_line)
        with self._folder.open(path) as file:
            _refuse_binary(file, path)
            taken, more = _lines_of(file, path, first, _between(1, lines, _MOST_LINES))
        last = first + len(taken) - 1
        note = f"lines {first} to {last}; go on with first_line={last + 1}" if more else f"the end, at line {last}"
        return "\n".join([*taken, f"[{note}]"])

    def search_text(self, text: str, path: str = ".", ignore_case: bool = False, limit: int = 50) -> dict[str, Any]:
        """Find the lines that hold a text, in a file or in all text files of a folder and the folders below it.

        Args:
            text: What to look for, letter by letter; no pattern.
            path: The file or folder, relative to the root.
            ignore_case: Whether large and small letters count as the same.
            limit: The most lines to show.
        """
        if not text or "\n" in text:
            raise ToolError(f"text is {text!r}; give a part of one line")
        found, complete = self._files(self._folder.resolve(path))
        search = _Search(text.casefold() if ignore_case else text, ignore_case, _between(1, limit, _MOST_MATCHES))
        for file in found:
            if search.read_bytes > _READ_BYTES:
                complete = False
                break
            search.look_at(file, self._folder)
        return search.result(complete=complete)

    def count_lines(self, path: str) -> dict[str, Any]:
        """Count the lines of a text file.

        Args:
            path: The file, relative to the root.
        """
        lines, size, last = 0, 0, b"\n"
        with self._folder.open(path) as file:
            _refuse_binary(file, path)
            while block := file.read(_BLOCK):
                size += len(block)
                if size > _READ_BYTES:
                    raise ToolError(f"{path!r} has more than {_READ_BYTES >> 20} MB; it is too large to be counted")
                lines += block.count(b"\n")
                last = block
        return {"path": path, "lines": lines + (not last.endswith(b"\n")), "bytes": size}

    def _files(self, start: Path) -> tuple[list[FolderFile], bool]:
        found = list(self._folder.walk(start))
        return [file for file in found if file is not None], None not in found


class _Search:
    """What a search has found so far."""

    def __init__(self, text: str, ignore_case: bool, limit: int) -> None:
        self._text = text
        self._ignore_case = ignore_case
        self._limit = limit
        self._matches: list[dict[str, Any]] = []
        self._files: list[str] = []
        self._total = 0
        self._skipped = 0
        self.read_bytes = 0

    def look_at(self, file: FolderFile, folder: ReadableFolder) -> None:
        """Search one file; one that is too large, no text, or cannot be read is counted as skipped."""
        if file.size > _SEARCHED_BYTES:
            self._skipped += 1
            return
        try:
            with folder.open_real(file.path, shown=file.name) as opened:
                raw = opened.read(_SEARCHED_BYTES)
        except (ToolError, OSError):
            self._skipped += 1
            return
        self.read_bytes += len(raw)
        if _is_binary(raw[:_BLOCK]):
            self._skipped += 1
            return
        self._search(file.name, raw.decode("utf-8", "replace"))

    def result(self, *, complete: bool) -> dict[str, Any]:
        """Return what the model reads."""
        return {
            "total_matches": self._total,
            "total_files": len(self._files),
            "complete": complete,
            "skipped_files": self._skipped,
            "files": self._files[:_MOST_LISTED],
            "matches": self._matches,
        }

    def _search(self, name: str, content: str) -> None:
        if self._text not in (content.casefold() if self._ignore_case else content):
            return
        before = self._total
        for number, line in enumerate(content.split("\n"), 1):
            if self._text in (line.casefold() if self._ignore_case else line):
                self._total += 1
                if len(self._matches) < self._limit:
                    self._matches.append({"path": name, "line": number, "text": line.strip()[:200]})
        if self._total > before:
            self._files.append(name)


def _lines_of(file: BinaryIO, path: str, first: int, count: int) -> tuple[list[str], bool]:
    """Return the wanted lines, and whether there are more."""
    taken: list[str] = []
    number, chars = 0, 0
    while line := _next_line(file):
        number += 1
        if file.tell() > _READ_BYTES:
            raise ToolError(
                f"line {first} of {path!r} comes after more than {_READ_BYTES >> 20} MB; read earlier lines"
            )
        if number < first:
            continue
        if len(taken) == count or chars > _MOST_CHARS:
            return taken, True
        text = line.decode("utf-8-sig" if number == 1 else "utf-8", "replace").rstrip("\r\n")
        taken.append(text if len(text) <= _LINE_CHARS else f"{text[:_LINE_CHARS]} [the line goes on]")
        chars += len(taken[-1])
    if number < first and (first, number) != (1, 0):
        raise ToolError(f"{path!r} has {number} lines, so there is no line {first}")
    return taken, False


def _next_line(file: BinaryIO) -> bytes:
    """Return the next line, or its beginning where it is very long; nothing at the end of the file."""
    line = file.readline(_BLOCK)
    piece = line
    while piece and not piece.endswith(b"\n") and file.tell() <= _READ_BYTES:
        piece = file.readline(_BLOCK)
    return line


def _refuse_binary(file: BinaryIO, path: str) -> None:
    if _is_binary(file.read(_BLOCK)):
        raise ToolError(f"{path!r} is no text file, so it has no lines to read")
    file.seek(0)


def _is_binary(sample: bytes) -> bool:
    if b"\0" in sample:
        return True
    return sample.decode("utf-8", "replace").count("�") > len(sample) * 0.3


def _between(least: int, value: int, most: int) -> int:
    return max(least, min(value, most))
