"""A folder that tools may read, and nothing outside of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from graphwright.exceptions import ConfigurationError, ToolError

__all__ = ["FolderFile", "ReadableFolder"]

_NOISE = frozenset({"__pycache__", "node_modules"})
_MOST_ENTRIES = 50_000
# Without waiting for whoever writes into a pipe, and without following a link that was put there in between.
_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file that a walk has found."""

    name: str
    """Its path below the root, with `/`."""

    path: Path

    size: int
    """Bytes."""


class ReadableFolder:
    """Resolves the paths that a model names, and refuses every one that leads out of the root.

    Links are followed as long as they end inside. Names that begin with a dot are out of bounds too, unless
    `hidden` is true: that is where keys and passwords tend to be.
    """

    def __init__(self, root: str | os.PathLike[str], *, hidden: bool = False) -> None:
        try:
            self.root = Path(root).expanduser().resolve(strict=True)
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigurationError(f"root {str(root)!r} cannot be used: {_why(error)}; give a folder") from error
        if not self.root.is_dir():
            raise ConfigurationError(f"root {str(root)!r} is no folder; give the folder that the tools may read")
        self._hidden = hidden

    def resolve(self, path: str) -> Path:
        """Return the real path of what a model named.

        Raises:
            ToolError: it is outside of the root, hidden, or not there.
        """
        try:
            # Where it leads is looked at before whether it is there: what exists outside is nobody's business.
            real = (self.root / path).resolve()
            if not real.is_relative_to(self.root):
                raise ToolError(f"{path!r} is outside of the folder; give a path below it, such as '.'")
            self._refuse_hidden(path, real)
            return real.resolve(strict=True)
        except FileNotFoundError:
            raise ToolError(f"there is no {path!r} in the folder; list_files shows what there is") from None
        except (OSError, RuntimeError, ValueError) as error:
            raise ToolError(f"{path!r} cannot be used: {_why(error)}") from error

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises:
            ToolError: it is outside of the root, hidden, no regular file, or cannot be read.
        """
        real = self.resolve(path)
        return self.open_real(real, shown=path)

    def open_real(self, real: Path, *, shown: str) -> BinaryIO:
        """Open a file whose real path is known to be inside."""
        descriptor = -1
        try:
            descriptor = os.open(real, _OPEN_FLAGS)
            found = os.fstat(descriptor)
            if stat.S_ISDIR(found.st_mode):
                raise ToolError(f"{shown!r} is a folder; list_files shows what is in it")
            if not stat.S_ISREG(found.st_mode):
                raise ToolError(f"{shown!r} is no regular file")
            if real.resolve(strict=True) != real or not os.path.samestat(found, os.stat(real)):
                raise ToolError(f"{shown!r} was replaced while it was opened; try again")
            opened, descriptor = os.fdopen(descriptor, "rb"), -1
            return opened
        except OSError as error:
            if real.is_dir():  # where a folder cannot be opened at all
                raise ToolError(f"{shown!r} is a folder; list_files shows what is in it") from error
            raise ToolError(f"{shown!r} cannot be read: {_why(error)}") from error
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def walk(self, start: Path) -> Iterator[FolderFile | None]:
        """Yield the regular files below `start`, folder by folder in the order of their names.

        Yields one last `None` when there was too much to look at. Linked folders are not entered.
        """
        if start.is_file():
            yield FolderFile(self.name_of(start), start, start.stat().st_size)
            return
        folders, seen = [start], 0
        while folders:
            below: list[Path] = []
            for entry in _entries(folders.pop()):
                seen += 1
                if seen > _MOST_ENTRIES:
                    yield None
                    return
                if entry.name in _NOISE or (entry.name.startswith(".") and not self._hidden):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    below.append(Path(entry.path))
                    continue
                found = self._file_of(entry)
                if found is not None:
                    yield found
            folders.extend(reversed(below))

    def name_of(self, path: Path) -> str:
        """Return a path as the tools show it: below the root, with `/`."""
        return os.fsencode(path.relative_to(self.root).as_posix()).decode("utf-8", "replace")

    def _file_of(self, entry: os.DirEntry[str]) -> FolderFile | None:
        path = Path(entry.path)
        try:
            if entry.is_symlink():
                real = path.resolve(strict=True)
                if not real.is_relative_to(self.root) or (not self._hidden and self._is_hidden(real)):
                    return None
                found = os.stat(real)
                target = real
            else:
                found = entry.stat(follow_symlinks=False)
                target = path
        except (OSError, RuntimeError):  # gone, a link to nowhere, or a link to itself
            return None
        return FolderFile(self.name_of(path), target, found.st_size) if stat.S_ISREG(found.st_mode) else None

    def _is_hidden(self, real: Path) -> bool:
        return any(part.startswith(".") for part in real.relative_to(self.root).parts)

    def _refuse_hidden(self, path: str, real: Path) -> None:
        if not self._hidden and self._is_hidden(real):
            raise ToolError(f"{path!r} is hidden, because its name begins with a dot; hidden files are not shown")


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # not readable, or gone meanwhile
        return []


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
