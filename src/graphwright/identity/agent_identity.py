"""Who an agent is: a name for the records, and credentials that prove it to others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from weakref import WeakKeyDictionary

from graphwright.exceptions import ConfigurationError, IdentityError
from graphwright.identity._tokens import claims_of
from graphwright.identity.base import Credential, CredentialSource
from graphwright.identity.sources import CallableSource, EnvironmentSource, FileSource

__all__ = ["AgentIdentity"]

_MOST_AUDIENCES = 1000
_EARLY_SECONDS = 60.0


@dataclass(slots=True)
class _Kept:
    credential: Credential
    renew_at: float | None
    """`time.time()` from which on another one is fetched."""


class AgentIdentity:
    """Who an agent is. One object serves any number of agents and runs; it never shows a credential in its `repr`."""

    def __init__(
        self,
        agent_id: str | None = None,
        *,
        name: str | None = None,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        credential: CredentialSource | Callable[[str | None], Any] | str | None = None,
    ) -> None:
        """Say who the agent is. Nobody is asked for anything yet.

        `agent_id` names it in events, tool calls and logs; without one, the subject of its credential does. `name`,
        `owner` and `labels` are for people. `credential` is a source of credentials, a function of the audience, or a
        fixed token.

        Raises:
            ConfigurationError: there is neither an `agent_id` nor a credential, or one of them does not fit.
        """
        if agent_id is not None and (not isinstance(agent_id, str) or not agent_id.strip()):
            raise ConfigurationError(f"agent_id is {agent_id!r}; give a text")
        if agent_id is None and credential is None:
            raise ConfigurationError("an AgentIdentity needs an agent_id, or a credential that says who the agent is")
        self.agent_id = agent_id
        self.name = name
        self.owner = owner
        self.labels = dict(labels or {})
        self._source = _source_of(credential)
        self._kept: dict[str | None, _Kept] = {}
        self._latest: Credential | None = None
        # A task belongs to a loop, and an identity may be used on several.
        self._asking: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str | None, asyncio.Task[Credential]]]
        self._asking = WeakKeyDictionary()

    @property
    def has_credential(self) -> bool:
        """Whether the agent can prove who it is."""
        return self._source is not None

    @property
    def subject(self) -> str | None:
        """Who the provider says the agent is; `None` until a credential was fetched that says so."""
        found = claims_of(self._latest.value).get("sub") if self._latest is not None else None
        return found if isinstance(found, str) and found else getattr(self._source, "subject", None)

    async def get_credential(self, audience: str | None = None, *, refresh: bool = False) -> Credential:
        """Return a credential that is valid now; it is kept for its audience and renewed before it ends.

        With `refresh` it is fetched anew, as after a server has rejected it. Whoever asks meanwhile gets the same.

        Raises:
            IdentityError: it cannot be had, or what was given has expired.
        """
        kept = self._kept.get(audience)
        if kept is not None and not refresh and (kept.renew_at is None or time.time() < kept.renew_at):
            return kept.credential
        try:
            return await self._fetch_once(audience)
        except IdentityError:
            # It is early yet: one that is still good is better than none.
            if kept is None or refresh or _has_ended(kept.credential):
                raise
            return kept.credential

    async def token(self, audience: str | None = None, *, refresh: bool = False) -> str:
        """Return the text of `get_credential`."""
        return (await self.get_credential(audience, refresh=refresh)).value

    async def auth_header(self, audience: str | None = None) -> dict[str, str]:
        """Return the header that proves who the agent is."""
        return {"Authorization": f"Bearer {await self.token(audience)}"}

    async def claims(self, audience: str | None = None) -> dict[str, Any]:
        """Return what the credential says of the agent; empty where it is no JWT. The signature is not looked at."""
        return claims_of(await self.token(audience))

    async def resolve_identifier(self) -> str:
        """Return the `agent_id`, else the subject of the credential, which is fetched for it.

        Raises:
            IdentityError: there is no credential to be had, or it names no subject.
        """
        if self.agent_id is not None:
            return self.agent_id
        if self.subject is None:
            await self.get_credential()
        if self.subject is None:
            raise IdentityError("the agent's credential names no subject; give AgentIdentity an agent_id")
        return self.subject

    async def _fetch_once(self, audience: str | None) -> Credential:
        """Join the fetching that is under way for an audience, or begin one. Leaving it does not end it for others."""
        if self._source is None:
            raise IdentityError(f"the agent {self.agent_id!r} has no credential; give AgentIdentity one")
        asking = self._asking.setdefault(asyncio.get_running_loop(), {})
        task = asking.get(audience)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._fetch(self._source, audience))
            asking[audience] = task
            task.add_done_callback(lambda ended: _forget(asking, audience, ended))
        return await asyncio.shield(task)

    async def _fetch(self, source: CredentialSource, audience: str | None) -> Credential:
        credential = await source.fetch(audience)
        now = time.time()
        if credential.expires_at is not None and credential.expires_at <= now:
            raise IdentityError(f"the credential of the agent expired {now - credential.expires_at:.0f} s ago")
        if len(self._kept) >= _MOST_AUDIENCES:
            self._kept.clear()
        self._kept[audience] = _Kept(credential, _renewal(credential, now, source))
        self._latest = credential
        return credential

    def __repr__(self) -> str:
        return f"AgentIdentity({self.agent_id!r}, name={self.name!r}, owner={self.owner!r})"

    @classmethod
    def from_file(cls, path: str | Path, agent_id: str | None = None, **who: Any) -> Self:
        """Return an identity whose token somebody else keeps fresh in a file."""
        return cls(agent_id, credential=FileSource(path), **who)

    @classmethod
    def from_env(cls, variable: str, agent_id: str | None = None, **who: Any) -> Self:
        """Return an identity whose token is in an environment variable."""
        return cls(agent_id, credential=EnvironmentSource(variable), **who)

    @classmethod
    def oidc(
        cls,
        issuer: str,
        agent_id: str | None = None,
        *,
        client_id: str,
        client_secret: str,
        name: str | None = None,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Self:
        """Return an identity of an OpenID Connect provider; `options` are those of `OIDCSource`."""
        from graphwright.identity.oidc import OIDCSource

        source = OIDCSource(issuer, client_id=client_id, client_secret=client_secret, **options)
        return cls(agent_id, name=name, owner=owner, labels=labels, credential=source)

    @classmethod
    def from_aws(
        cls,
        agent_id: str | None = None,
        *,
        audience: str | None = None,
        region: str | None = None,
        client: Any = None,
        **who: Any,
    ) -> Self:
        """Return the identity of the AWS role that the process runs as. Needs the extra `aws`."""
        from graphwright.identity.cloud import AWSSource

        return cls(agent_id, credential=AWSSource(audience=audience, region=region, client=client), **who)

    @classmethod
    def from_entra(
        cls, agent_id: str | None = None, *, audience: str | None = None, credential: Any = None, **who: Any
    ) -> Self:
        """Return the Entra identity of the process, or of an `azure.identity` credential. Needs the extra `entra`."""
        from graphwright.identity.cloud import EntraSource

        return cls(agent_id, credential=EntraSource(credential, audience=audience), **who)

    @classmethod
    def from_gcp(cls, agent_id: str | None = None, *, audience: str | None = None, **who: Any) -> Self:
        """Return the Google service account that the process runs as. Needs the extra `gcp`."""
        from graphwright.identity.cloud import GCPSource

        return cls(agent_id, credential=GCPSource(audience=audience), **who)

    @classmethod
    def from_spiffe(
        cls, agent_id: str | None = None, *, audience: str | None = None, socket: str | None = None, **who: Any
    ) -> Self:
        """Return the SPIFFE identity of the process, by its Workload API. Needs the extra `spiffe`."""
        from graphwright.identity.cloud import SpiffeSource

        return cls(agent_id, credential=SpiffeSource(socket, audience=audience), **who)

    @classmethod
    def auto(cls, agent_id: str | None = None, **who: Any) -> Self:
        """Return the identity that the environment of the process gives it.

        Raises:
            IdentityError: it gives none; the message says what was looked for.
        """
        from graphwright.identity.cloud import source_of_environment

        return cls(agent_id, credential=source_of_environment(), **who)


def _source_of(credential: Any) -> CredentialSource | None:
    if credential is None or isinstance(credential, CredentialSource):
        return credential
    if isinstance(credential, str):
        return CallableSource(lambda _: credential)
    return CallableSource(credential)


def _forget(asking: dict[str | None, asyncio.Task[Credential]], audience: str | None, ended: asyncio.Task[Any]) -> None:
    asking.pop(audience, None)
    if not ended.cancelled():
        ended.exception()  # nobody may be left who waits for it


def _has_ended(credential: Credential) -> bool:
    return credential.expires_at is not None and credential.expires_at <= time.time()


def _renewal(credential: Credential, now: float, source: CredentialSource) -> float | None:
    if isinstance(source, (FileSource, EnvironmentSource)):
        return now  # looking again costs nothing, and somebody else renews it
    if credential.expires_at is None:
        return None
    # A minute early, but not right away for one that lives no longer than that.
    return credential.expires_at - min(_EARLY_SECONDS, (credential.expires_at - now) / 5)
