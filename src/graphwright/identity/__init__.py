"""Who an agent is, and how it proves it to the servers that it uses."""

from graphwright.exceptions import IdentityError
from graphwright.identity.agent_identity import AgentIdentity
from graphwright.identity.base import Credential, CredentialSource
from graphwright.identity.cloud import AWSSource, EntraSource, GCPSource, SpiffeSource
from graphwright.identity.oidc import OIDCSource
from graphwright.identity.sources import CallableSource, EnvironmentSource, FileSource

__all__ = [
    "AWSSource",
    "AgentIdentity",
    "CallableSource",
    "Credential",
    "CredentialSource",
    "EntraSource",
    "EnvironmentSource",
    "FileSource",
    "GCPSource",
    "IdentityError",
    "OIDCSource",
    "SpiffeSource",
]
