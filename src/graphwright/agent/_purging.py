"""Remove a person from everything that an agent keeps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from graphwright._internal.aio import call_maybe_async
from graphwright.caller import CallerContext, IsolationKey

if TYPE_CHECKING:
    from graphwright.runlog.base import RunLog

__all__ = ["purge"]

_PAGE = 100

Purge = Callable[[], Awaitable[int]]


async def purge(owner: IsolationKey, caller: CallerContext, **stores: Any) -> dict[str, int]:
    """Remove the owner from each store that there is, and return how much was removed from each.

    One store that fails keeps none of the others from it; its error is raised at the end.
    """
    steps: dict[str, Purge] = {}
    conversations, memory, cache = (stores.get(name) for name in ("conversations", "memory", "cache"))
    flows, lessons, observed, runlog = (stores.get(name) for name in ("flows", "lessons", "observed", "runlog"))
    if conversations is not None:
        steps["conversations"] = lambda: conversations.purge_user(str(owner))
    if memory is not None:
        steps["memory"] = lambda: memory.purge_user(caller.user_id, tenant_id=caller.tenant_id)
    if cache is not None:
        steps["cache"] = lambda: cache.purge_user(owner)
    if flows is not None:
        steps["flows"] = lambda: flows.purge_user(owner)
    if lessons is not None:
        steps["lessons"] = lambda: lessons.purge_user(owner)
    if observed is not None:
        steps["observed"] = lambda: call_maybe_async(observed.purge_user, caller)
    if runlog is not None:
        steps["runlog"] = lambda: _purge_log(runlog, owner)
    removed: dict[str, int] = {}
    errors: list[Exception] = []
    for name, step in steps.items():
        try:
            removed[name] = await step()
        except Exception as error:  # the others are purged all the same, and then it is raised
            error.add_note(f"while removing a user from {name}; removed so far: {removed}")
            errors.append(error)
    if errors:
        raise errors[0]
    return removed


async def _purge_log(log: RunLog, owner: IsolationKey) -> int:
    """Delete the threads of the owner. One that a run is at work on raises, after all others are gone."""
    count = 0
    busy: list[Exception] = []
    while True:
        threads = await log.threads(owner=str(owner), limit=_PAGE, offset=len(busy))
        if not threads:
            break
        for thread in threads:
            try:
                count += await log.delete_thread(thread.thread_id)
            except Exception as error:  # at work, or out of reach: the rest first
                busy.append(error)
    if busy:
        raise busy[0]
    return count
