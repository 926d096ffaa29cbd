"""Where a hook keeps what belongs to one run: a hook object is shared by all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from graphwright.engine.base import NodeContext
from graphwright.run_scope import current_run

if TYPE_CHECKING:
    from graphwright.engine.state import GraphState

__all__ = ["memory_of"]

M = TypeVar("M")


def memory_of(hook: Any, state: GraphState, make: Callable[[], M]) -> M:
    """Return what `hook` keeps for the run that is going on here, made by `make` when it is first asked for.

    Children on copies of the state share it. A hook that is called by hand, outside of a run, keeps it with `state`.
    """
    run = current_run()
    kept = run.scratch if isinstance(run, NodeContext) else state.__dict__.setdefault("_kept_by_hooks", {})
    found = kept.get(hook)
    if found is None:
        found = kept[hook] = make()
    return cast("M", found)
