"""One folder and nothing outside of it, also when links are swapped while a call is at work."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from graphwright.exceptions import ConfigurationError, ToolError

_DIRECTORY = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

Parts = tuple[str, ...]


class Tree:
    """The folder that file tools may use.

    A path is resolved first, so a link that stays inside is followed. What was resolved is then opened name by name
    from the folder down, following no link: one that was put there in between is an error, never a way out.
    """

    def __init__(self, root: str | os.PathLike[str], exclude: Sequence[str | os.PathLike[str]] = ()) -> None:
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise ConfigurationError(
                "file tools need a system that opens files relative to a folder (Linux, macOS), and this one does not"
            )
        if isinstance(exclude, (str, bytes)):
            raise ConfigurationError(f"exclude is {exclude!r}; give a list of paths")
        self.root = os.path.realpath(root)
        if not os.path.isdir(self.root):
            raise ConfigurationError(f"root is {str(root)!r}, which is no folder; create it, or name another")
        self._exclude = [Path(self.root, entry) for entry in exclude]
        for entry in self._exclude:
            if self._inside(os.path.realpath(entry)) is None:
                raise ConfigurationError(f"exclude names {str(entry)!r}, which is not inside of root {self.root!r}")

    def resolve(self, path: str) -> Parts:
        """Return the real place of a path as names from the root down.

        Raises:
            ToolError: it is outside of the root, or excluded.
        """
        return self._checked(path, os.path.realpath(self._joined(path)))

    def resolve_entry(self, path: str) -> Parts:
        """Return the place of a name itself: where it is a link, the link and not what it leads to."""
        joined = os.path.normpath(self._joined(path))
        parent, name = os.path.split(joined)
        return self._checked(path, os.path.join(os.path.realpath(parent), name))

    def exclusions(self) -> Callable[[Parts], bool]:
        """Return a function that says whether a place is an excluded one, or inside of one, as things are now."""
        closed = list(self._excluded())

        def is_excluded(parts: Parts) -> bool:
            folded = tuple(part.casefold() for part in parts) if closed else ()
            return any(folded[: len(entry)] == entry for entry in closed)

        return is_excluded

    @contextmanager
    def folder(self, parts: Parts, shown: str, *, create: bool = False) -> Iterator[int]:
        """Open a folder and yield its descriptor; with `create`, missing folders are made."""
        current = os.open(self.root, _DIRECTORY)
        try:
            for part in parts:
                following = _step(current, part, shown, create=create)
                os.close(current)
                current = following
            yield current
        finally:
            os.close(current)

    @contextmanager
    def regular_file(self, parts: Parts, shown: str) -> Iterator[int]:
        """Open a file for reading and yield its descriptor; pipes, devices and folders are refused."""
        if not parts:
            raise ToolError(f"{shown!r} is a folder; list it with another tool")
        with self.folder(parts[:-1], shown) as parent:
            try:
                # Without O_NONBLOCK, opening a pipe would wait for a writer.
                opened = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=parent)
            except OSError as error:
                raise failed("read", shown, error) from None
        try:
            mode = os.fstat(opened).st_mode
            if not stat.S_ISREG(mode):
                raise ToolError(f"{shown!r} is a {kind_of(mode)}, not a file")
            yield opened
        finally:
            os.close(opened)

    def _joined(self, path: str) -> str:
        if "\0" in path:
            raise ToolError(f"{path!r} is no path: it holds a NUL character")
        return os.path.join(self.root, path)

    def _checked(self, path: str, real: str) -> Parts:
        parts = self._inside(real)
        if parts is None:
            raise ToolError(f"{path!r} is outside of the folder that this tool may use; give a path inside of it")
        if self.exclusions()(parts):
            raise ToolError(f"{path!r} is closed to this tool; use another path")
        return parts

    def _inside(self, real: str) -> Parts | None:
        if real == self.root:
            return ()
        prefix = self.root if self.root.endswith(os.sep) else self.root + os.sep
        return tuple(real[len(prefix) :].split(os.sep)) if real.startswith(prefix) else None

    def _excluded(self) -> Iterator[Parts]:
        # Asked anew each time: an excluded path need not exist when the tool is made. Names are compared without
        # case, since some file systems do.
        for entry in self._exclude:
            for place in {os.path.normpath(entry), os.path.realpath(entry)}:
                parts = self._inside(place)
                if parts is not None:
                    yield tuple(part.casefold() for part in parts)


def _step(parent: int, part: str, shown: str, *, create: bool) -> int:
    try:
        if create:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=parent)
        return os.open(part, os.O_RDONLY | _DIRECTORY, dir_fd=parent)
    except OSError as error:
        raise failed("reached", shown, error) from None


def failed(what: str, shown: str, error: OSError) -> ToolError:
    """Return the error for the model, which names no path but the one it gave."""
    return ToolError(f"{shown!r} cannot be {what}: {error.strerror or type(error).__name__}")


def kind_of(mode: int) -> str:
    """Return what an entry is, in words."""
    for test, word in (
        (stat.S_ISREG, "file"),
        (stat.S_ISDIR, "folder"),
        (stat.S_ISLNK, "link"),
        (stat.S_ISFIFO, "pipe"),
        (stat.S_ISSOCK, "socket"),
    ):
        if test(mode):
            return word
    return "device"
