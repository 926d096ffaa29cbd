"""The memory files of a bot: one for everybody who is not named, one for each caller who is."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Literal

from graphwright.caller import get_current_caller, get_current_session_id
from graphwright.exceptions import ConfigurationError
from graphwright.orchestrator.memory_file import MemoryFile

__all__ = ["Memories", "MemoryScope"]

MemoryScope = Literal["caller", "thread"]
"""Whose memory a run reads: that of its caller (of everybody who is not named together), or that of its thread."""

_MOST_OPEN = 1000


class Memories:
    """Gives each run the memory file that is its own."""

    def __init__(self, path: str | os.PathLike[str], *, scope: MemoryScope = "caller") -> None:
        if scope not in ("caller", "thread"):
            raise ConfigurationError(f"memory_scope is {scope!r}; use 'caller' or 'thread'")
        self._path = path
        self._scope = scope
        self._files: OrderedDict[str | None, MemoryFile] = OrderedDict()

    async def render(self) -> str:
        """Return the part of the prompt that holds the memory of the run that is going on."""
        return await self.current().render()

    async def append(self, goal: str, outcome: str) -> None:
        """Keep what came of the run that is going on."""
        await self.current().append(goal, outcome)

    def current(self) -> MemoryFile:
        """Return the file of the run that is going on."""
        scope = self._key()
        found = self._files.get(scope)
        if found is None:
            found = self._files[scope] = MemoryFile(self._path, scope=scope)
            if len(self._files) > _MOST_OPEN:
                self._files.popitem(last=False)
        return found

    def _key(self) -> str | None:
        caller = get_current_caller()
        key = caller.isolation_key if caller is not None else None
        if self._scope == "thread":
            return f"{key or ''} thread {get_current_session_id() or ''}"
        return key
