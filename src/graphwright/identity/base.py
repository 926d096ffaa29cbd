"""The port behind an agent's identity: where credentials that prove it come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

__all__ = ["Credential", "CredentialSource"]


@dataclass(frozen=True, slots=True)
class Credential:
    """A token that proves who the agent is, for one audience."""

    value: str = field(repr=False)
    """What is sent as `Authorization: Bearer ...`."""

    expires_at: float | None = None
    """Seconds since the epoch; `None` where it does not say."""


@runtime_checkable
class CredentialSource(Protocol):
    """Where credentials come from. It keeps none: the identity does."""

    async def fetch(self, audience: str | None) -> Credential:
        """Return a new credential for an audience; `None` leaves the audience to the source.

        Raises:
            IdentityError: it cannot be had.
        """
        ...
