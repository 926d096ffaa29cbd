"""What one child of a run has used, counted for itself and for everything around it.

Children that run side by side use up the same limits; the log has to say what each of them used by itself.
"""

from __future__ import annotations

from typing import Any

from graphwright.run_scope import Spent, Stop
from graphwright.usage import Usage

__all__ = ["SpentShare", "UsageShare", "own_steps"]


class UsageShare(Usage):
    """Tokens of a child, which are tokens of its parent too."""

    __slots__ = ("_parent",)

    def __init__(self, parent: Usage) -> None:
        super().__init__()
        self._parent = parent

    def add(self, other: Usage) -> None:
        """Add the figures of another call here and to every usage around this one."""
        super().add(other)
        self._parent.add(other)


class SpentShare(Spent):
    """Steps and changes of a child. Read as the whole run's, so that the limits hold; counted for the child."""

    __slots__ = ("_parent", "own")

    def __init__(self, parent: Spent) -> None:
        self._parent = parent
        self.own = [0, 0]
        """Steps and changes of the graph."""

    @property
    def steps(self) -> int:
        """Node executions of the run."""
        return self._parent.steps

    @steps.setter
    def steps(self, value: int) -> None:
        self.own[0] += value - self._parent.steps
        self._parent.steps = value

    @property
    def mutations(self) -> int:
        """Changes of the graph in the run."""
        return self._parent.mutations

    @mutations.setter
    def mutations(self, value: int) -> None:
        self.own[1] += value - self._parent.mutations
        self._parent.mutations = value

    @property
    def note(self) -> str | None:
        """The latest remark of a hook in the run."""
        return self._parent.note

    @note.setter
    def note(self, value: str | None) -> None:
        self._parent.note = value

    @property
    def stop(self) -> Stop | None:
        """Why the run was ended."""
        return self._parent.stop

    @stop.setter
    def stop(self, value: Stop | None) -> None:
        self._parent.stop = value


def own_steps(spent: Any) -> tuple[int, int]:
    """Return the steps and changes that belong to a child, or to the run where it is no child's."""
    if isinstance(spent, SpentShare):
        return spent.own[0], spent.own[1]
    return spent.steps, spent.mutations
