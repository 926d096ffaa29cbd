"""Make the caller and the session of a request the current ones while it runs."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from graphwright.caller import calling_as

if TYPE_CHECKING:
    from graphwright.runtime.request import RunRequest
    from graphwright.runtime.stack import Handler

__all__ = ["caller_layer"]


def caller_layer(request: RunRequest, call_next: Handler) -> Awaitable[Any]:
    """Run the rest with the request's caller; without one, the ambient caller stays."""
    if request.caller is None and request.session_id is None:
        return call_next(request)
    return _called(request, call_next)


async def _called(request: RunRequest, call_next: Handler) -> Any:
    with calling_as(request.caller, session_id=request.session_id):
        return await call_next(request)
