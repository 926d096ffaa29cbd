"""Credentials that a platform gives to the processes it runs, asked for by the platform's own library."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

from graphwright._internal.optional import is_installed
from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import IdentityError, MissingExtraError
from graphwright.identity._tokens import checked
from graphwright.identity.base import Credential, CredentialSource
from graphwright.identity.oidc import OIDCSource
from graphwright.identity.sources import FileSource

__all__ = ["AWSSource", "EntraSource", "GCPSource", "SpiffeSource", "source_of_environment"]


_SECONDS = 10.0


class _LibrarySource:
    """A vendor's library, which blocks, so it is called in a thread."""

    what: ClassVar[str]
    extra: ClassVar[str]
    package: ClassVar[str]
    module: ClassVar[str]

    def __init__(self, audience: str | None) -> None:
        if not is_installed(self.module):
            raise MissingExtraError(self.what, extra=self.extra, package=self.package)
        self._audience = audience

    async def fetch(self, audience: str | None) -> Credential:
        """Ask the platform."""
        audience = audience or self._audience
        if audience is None:
            raise IdentityError(f"{self.what} needs an audience; set it on the server's spec, or on the identity")
        try:
            token, expires_at = await run_in_thread(self._ask, audience)
        except Exception as error:  # the vendor's code; what it says may hold a secret
            raise IdentityError(f"{self.what} gave no credential for {audience!r}: {type(error).__name__}") from error
        return checked(token, self.what, expires_at)

    def _ask(self, audience: str) -> tuple[str, float | None]:
        raise NotImplementedError


class AWSSource(_LibrarySource):
    """Tokens that AWS STS issues for the role of the process (`GetWebIdentityToken`)."""

    what, extra, package, module = "an AWS identity", "aws", "boto3", "boto3"

    def __init__(self, *, audience: str | None = None, region: str | None = None, client: Any = None) -> None:
        """Prepare. `client` is an STS client of `boto3`, in place of one with the credentials of the environment."""
        super().__init__(audience)
        self._region, self._client = region, client

    def _ask(self, audience: str) -> tuple[str, float | None]:
        if self._client is None:
            import boto3

            self._client = boto3.client("sts", region_name=self._region)
        found = self._client.get_web_identity_token(Audience=[audience], SigningAlgorithm="RS256")
        return found["WebIdentityToken"], found["Expiration"].timestamp()


class EntraSource(_LibrarySource):
    """Tokens of Microsoft Entra. The audience is a resource, such as `api://my-server`, or a scope of it."""

    what, extra, package, module = "an Entra identity", "entra", "azure-identity", "azure.identity"

    def __init__(self, credential: Any = None, *, audience: str | None = None) -> None:
        """Prepare. `credential` is one of `azure.identity`; without one, what the environment gives is used."""
        super().__init__(audience)
        self._credential = credential

    def _ask(self, audience: str) -> tuple[str, float | None]:
        if self._credential is None:
            from azure.identity import DefaultAzureCredential

            self._credential = DefaultAzureCredential()
        is_scope = audience.endswith("/.default")
        found = self._credential.get_token(audience if is_scope else f"{audience.rstrip('/')}/.default")
        return found.token, float(found.expires_on)


class GCPSource(_LibrarySource):
    """ID tokens of the Google service account of the process."""

    what, extra, package, module = "a Google identity", "gcp", "google-auth", "google.oauth2.id_token"

    def __init__(self, *, audience: str | None = None) -> None:
        """Prepare; the metadata server, or the file of `GOOGLE_APPLICATION_CREDENTIALS`, is asked later."""
        super().__init__(audience)

    def _ask(self, audience: str) -> tuple[str, float | None]:
        from google.auth.transport.requests import Request
        from google.oauth2 import id_token

        library: Any = id_token
        return library.fetch_id_token(Request(), audience), None


class SpiffeSource(_LibrarySource):
    """JWT-SVIDs of a SPIFFE Workload API."""

    what, extra, package, module = "a SPIFFE identity", "spiffe", "spiffe", "spiffe"

    def __init__(self, socket: str | None = None, *, audience: str | None = None) -> None:
        """Prepare. `socket` is the address of the Workload API; `None` takes `SPIFFE_ENDPOINT_SOCKET`."""
        super().__init__(audience)
        self._socket = socket

    def _ask(self, audience: str) -> tuple[str, float | None]:
        from spiffe import WorkloadApiClient

        with WorkloadApiClient(self._socket, default_timeout=_SECONDS) as client:
            found = client.fetch_jwt_svid(audience={audience})
        return found.token, float(found.expiry)


_LOOKED_FOR: tuple[tuple[tuple[str, ...], Callable[[], CredentialSource]], ...] = (
    (("SPIFFE_ENDPOINT_SOCKET",), SpiffeSource),
    (
        ("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"),
        lambda: OIDCSource(
            os.environ["OIDC_ISSUER"],
            client_id=os.environ["OIDC_CLIENT_ID"],
            client_secret=os.environ["OIDC_CLIENT_SECRET"],
        ),
    ),
    (("AZURE_FEDERATED_TOKEN_FILE",), EntraSource),
    (("IDENTITY_ENDPOINT",), EntraSource),
    (("AWS_WEB_IDENTITY_TOKEN_FILE",), AWSSource),
    (("AWS_CONTAINER_CREDENTIALS_FULL_URI",), AWSSource),
    (("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",), AWSSource),
    (("AWS_LAMBDA_FUNCTION_NAME",), AWSSource),
    (("K_SERVICE",), GCPSource),
    (("GOOGLE_APPLICATION_CREDENTIALS",), GCPSource),
    (("GCE_METADATA_HOST",), GCPSource),
    (("IDENTITY_TOKEN_FILE",), lambda: FileSource(os.environ["IDENTITY_TOKEN_FILE"])),
)


def source_of_environment() -> CredentialSource:
    """Return the source of the platform that has set its variables for this process.

    Raises:
        IdentityError: none has.
    """
    for variables, make in _LOOKED_FOR:
        if all(os.environ.get(name) for name in variables):
            return make()
    known = "; ".join(" and ".join(variables) for variables, _ in _LOOKED_FOR)
    raise IdentityError(f"nothing in the environment says who the agent is; looked for {known}")
