"""Tools that read and change the files of one folder."""

from __future__ import annotations

import codecs
import difflib
import errno
import mimetypes
import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatch
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field

from graphwright.exceptions import ToolError
from graphwright.tools.builtin._base import BuiltinTool, checked_count
from graphwright.tools.builtin._tree import Parts, Tree, failed, kind_of

__all__ = ["DeleteFileTool", "FindFileTool", "ListDirTool", "ReadFileTool", "WriteFileTool"]

StrPath = str | os.PathLike[str]

_WALKED = 50_000
_MOST_BYTES_OF_A_PREVIEW = 200_000


class _FileTool(BuiltinTool):
    """A tool of one folder."""

    def __init__(
        self, *, root: StrPath, exclude: Sequence[StrPath] = (), name: str | None = None, timeout: float | None = None
    ) -> None:
        super().__init__(name=name, timeout=timeout)
        self._tree = Tree(root, exclude)


class ReadFileTool(_FileTool):
    """Read text files inside `root`, a page of `max_bytes` at a time; a binary file is described instead."""

    tool_name = "read_file"
    risk_level = 1
    idempotent = True

    def __init__(self, *, root: StrPath, max_bytes: int = 50_000, **options: Any) -> None:
        super().__init__(root=root, **options)
        self._max_bytes = checked_count(max_bytes, "max_bytes")

    def call(
        self,
        path: str,
        offset: Annotated[int, Field(ge=0)] = 0,
        limit: Annotated[int, Field(ge=4)] | None = None,
    ) -> str:
        """Read a text file, or a part of it.

        Args:
            path: The file, relative to the folder of this tool.
            offset: Byte at which to begin.
            limit: Most bytes to read.
        """
        wanted = min(self._max_bytes, limit or self._max_bytes)
        with self._tree.regular_file(self._tree.resolve(path), path) as opened:
            size = os.fstat(opened).st_size
            if offset > size:
                raise ToolError(f"{path!r} has {size} bytes, and offset is {offset}; begin before its end")
            with os.fdopen(os.dup(opened), "rb") as file:
                file.seek(offset)
                data = file.read(wanted)
        return _page(path, data, offset, size)


def _page(path: str, data: bytes, offset: int, size: int) -> str:
    begin = 0
    while offset and begin < min(3, len(data)) and data[begin] & 0xC0 == 0x80:
        begin += 1  # the rest of a character that began before the page
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(data[begin:], final=offset + len(data) >= size)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        kind = mimetypes.guess_type(path)[0] or "unknown type"
        return f"[{path} is a binary file or not UTF-8: {size} bytes, {kind}; its content is not shown]"
    end = offset + len(data) - len(decoder.getstate()[0])
    if offset == 0 and end >= size:
        return text
    more = f"; go on with offset={end}" if end < size else "; this is the end"
    return f"{text}\n[bytes {offset + begin} to {end} of {size}{more}]"


class WriteFileTool(_FileTool):
    """Write text files inside `root`; a file has its old content or all of the new one, never a part."""

    tool_name = "write_file"
    risk_level = 1
    idempotent = True

    def __init__(self, *, root: StrPath, max_bytes: int = 1_000_000, **options: Any) -> None:
        super().__init__(root=root, **options)
        self._max_bytes = checked_count(max_bytes, "max_bytes")

    def call(self, path: str, content: str, mode: Literal["replace", "create"] = "replace") -> str:
        """Write a text file as a whole; folders that are missing are made.

        Args:
            path: The file, relative to the folder of this tool.
            content: All the text that the file is to have.
            mode: "create" refuses a file that is there already.
        """
        try:
            data = content.encode()
        except UnicodeEncodeError:
            raise ToolError("content holds a lone surrogate, which no file can; leave it out") from None
        if len(data) > self._max_bytes:
            raise ToolError(f"content has {len(data)} bytes; write at most {self._max_bytes}")
        parts = self._tree.resolve(path)
        if not parts or path.endswith("/"):
            raise ToolError(f"{path!r} is a folder; give the name of a file")
        with self._tree.folder(parts[:-1], path, create=True) as parent:
            _write_whole(parent, parts[-1], data, path, replace=mode == "replace")
        return f"wrote {len(data)} bytes to {path}"

    def preview(self, args: dict[str, Any]) -> str:
        """Return what a call would change, for whoever is asked to approve it."""
        path, after = str(args.get("path", "")), str(args.get("content", ""))
        before = ""
        with suppress(ToolError), self._tree.regular_file(self._tree.resolve(path), path) as opened:
            before = os.read(opened, _MOST_BYTES_OF_A_PREVIEW).decode(errors="replace")
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
        return "\n".join(islice(lines, 500))


def _write_whole(parent: int, name: str, data: bytes, shown: str, *, replace: bool) -> None:
    try:
        there: int | None = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        there = None
    if there is not None and not (replace and stat.S_ISREG(there)):
        raise ToolError(f"{shown!r} is there already ({kind_of(there)}) and was left as it is")
    temporary = f".{secrets.token_hex(8)}.part"
    try:
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=parent)
        try:
            with os.fdopen(opened, "wb") as file:
                if there is not None:
                    os.fchmod(opened, stat.S_IMODE(there))
                file.write(data)
                file.flush()
                os.fsync(opened)
            if replace:
                os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            else:
                # A link is refused where the name exists, also when it came just now.
                os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=parent)
    except OSError as error:
        raise failed("written", shown, error) from None


class DeleteFileTool(_FileTool):
    """Delete one file, one link or one empty folder inside `root`."""

    tool_name = "delete_file"
    risk_level = 2

    def call(self, path: str) -> str:
        """Delete a file, or a folder that is empty.

        Args:
            path: What to delete, relative to the folder of this tool.
        """
        parts = self._tree.resolve_entry(path)
        if not parts:
            raise ToolError(f"{path!r} is the folder of this tool itself, which stays")
        with self._tree.folder(parts[:-1], path) as parent:
            try:
                mode = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    os.rmdir(parts[-1], dir_fd=parent)
                else:
                    os.unlink(parts[-1], dir_fd=parent)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise ToolError(f"folder {path!r} is not empty; delete what is in it first") from None
                raise failed("deleted", path, error) from None
        return f"deleted the {kind_of(mode)} {path}"


class ListDirTool(_FileTool):
    """List the folders inside `root`."""

    tool_name = "list_dir"
    risk_level = 0
    idempotent = True

    def __init__(self, *, root: StrPath, max_entries: int = 500, **options: Any) -> None:
        super().__init__(root=root, **options)
        self._max_entries = checked_count(max_entries, "max_entries")

    def call(self, path: str = ".", offset: Annotated[int, Field(ge=0)] = 0) -> str:
        """List a folder: its folders, and its files with their sizes in bytes.

        Args:
            path: The folder, relative to the folder of this tool.
            offset: How many entries to leave out at the beginning.
        """
        parts, excluded = self._tree.resolve(path), self._tree.exclusions()
        with self._tree.folder(parts, path) as opened:
            names = sorted(name for name in os.listdir(opened) if not excluded((*parts, name)))
            page = names[offset : offset + self._max_entries]
            lines = [line for name in page if (line := _line(opened, name))]
        end = offset + len(page)
        if end < len(names):
            lines.append(f"[{len(names) - end} more; go on with offset={end}]")
        return "\n".join(lines) or "(empty)"


def _line(folder: int, name: str) -> str | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    shown = name.encode(errors="replace").decode()
    if stat.S_ISREG(found.st_mode):
        return f"{shown}  {found.st_size}"
    return f"{shown}/" if stat.S_ISDIR(found.st_mode) else f"{shown}  ({kind_of(found.st_mode)})"


class FindFileTool(_FileTool):
    """Find files by name inside `root`; links to folders are not followed."""

    tool_name = "find_file"
    risk_level = 0
    idempotent = True

    def __init__(self, *, root: StrPath, max_results: int = 200, **options: Any) -> None:
        super().__init__(root=root, **options)
        self._max_results = checked_count(max_results, "max_results")

    def call(self, pattern: str, path: str = ".") -> str:
        """Find files whose name fits a pattern, in a folder and all folders below it.

        Args:
            pattern: A name with wildcards such as "*.md"; with a "/" in it, it is compared with the whole path.
            path: The folder to begin in, relative to the folder of this tool.
        """
        found, whole = self._find(self._tree.resolve(path), pattern, path)
        if not found:
            return f"no file fits {pattern!r}" + (
                "" if whole else "; not every folder was looked at, name one with path"
            )
        if not whole:
            found.append(f"[the first {len(found)}; there may be more: narrow the pattern or the path]")
        return "\n".join(found)

    def _find(self, start: Parts, pattern: str, shown: str) -> tuple[list[str], bool]:
        found: list[str] = []
        seen, excluded = 0, self._tree.exclusions()
        with self._tree.folder(start, shown) as opened:
            for below, folders, files, _ in os.fwalk(".", dir_fd=opened, follow_symlinks=False):
                inside = tuple(part for part in below.split(os.sep) if part != ".")
                here = (*start, *inside)
                folders[:] = sorted(name for name in folders if not excluded((*here, name)))
                for name in sorted(files):
                    seen += 1
                    place = "/".join((*here, name))
                    if fnmatch(place if "/" in pattern else name, pattern) and not excluded((*here, name)):
                        found.append(place.encode(errors="replace").decode())
                    if len(found) >= self._max_results or seen >= _WALKED:
                        return found, False
                seen += len(folders)
        return found, True
