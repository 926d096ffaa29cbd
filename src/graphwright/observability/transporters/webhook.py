"""Post the record to a webhook, in batches."""

from __future__ import annotations

from graphwright._internal.outbox import Outbox
from graphwright._internal.posting import Poster
from graphwright.observability.base import TimelineEntry, Transporter

__all__ = ["WebhookTransporter"]

_BATCH = 100
_SECONDS = 10.0


class WebhookTransporter(Transporter):
    """Posts entries as `{"entries": [...]}` in the background, up to a hundred at a time."""

    name = "webhook"

    def __init__(self, poster: Poster, *, max_size: int = 10_000) -> None:
        self._poster = poster
        self._queue: Outbox[TimelineEntry] = Outbox(
            "the webhook transporter", self._post, max_size=max_size, batch=_BATCH
        )

    def export(self, entry: TimelineEntry) -> None:
        """Queue one entry."""
        self._queue.put(entry)

    async def flush(self) -> None:
        """Wait until what is queued was posted or has failed."""
        await self._queue.drain(_SECONDS)

    async def close(self) -> None:
        """Post what is queued, and stop.

        Raises:
            RuntimeError: not everything arrived; it says how much did not.
        """
        left = await self._queue.close(_SECONDS)
        if left or self._queue.refused:
            raise RuntimeError(f"{len(left) + self._queue.refused} entries were not delivered")

    async def _post(self, entries: list[TimelineEntry]) -> None:
        await self._poster.post({"entries": [entry.to_dict() for entry in entries]})
