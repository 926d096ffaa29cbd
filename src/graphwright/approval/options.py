"""Read what people give as `approval=`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from graphwright.approval.base import ApprovalHandler
from graphwright.approval.handlers import as_handler
from graphwright.approval.policy import ApprovalPolicy
from graphwright.exceptions import ConfigurationError

__all__ = ["Approvals", "as_approvals"]

_KEYS = tuple(field.name for field in fields(ApprovalPolicy) if field.init)


@dataclass(frozen=True, kw_only=True, slots=True)
class Approvals:
    """Who approves what of an agent."""

    policy: ApprovalPolicy | None = None
    """What gates the agent's own calls; `None` gates none."""

    handler: ApprovalHandler | None = None
    """Who answers servers that ask for a yes or a no."""


def as_approvals(value: Any) -> Approvals | None:
    """Return who approves what: a policy, a list of patterns or a dict of a policy's fields gates calls.

    A handler or a function alone answers servers only.

    Raises:
        ConfigurationError: it is nothing of these.
    """
    if value is None or value is False:
        return None
    if isinstance(value, Mapping):
        unknown = [key for key in value if key not in _KEYS]
        if unknown:
            raise ConfigurationError(f"approval has the unknown key {unknown[0]!r}; it takes {', '.join(_KEYS)}")
        if "tools" not in value:
            raise ConfigurationError("approval has no 'tools'; give patterns such as {'tools': ['delete_*']}")
        value = ApprovalPolicy(**value)
    elif isinstance(value, str):
        raise ConfigurationError(f"approval is {value!r}; give a list of patterns, such as approval=[{value!r}]")
    elif isinstance(value, (list, tuple, set, frozenset)):
        value = ApprovalPolicy(tools=sorted(value, key=str) if isinstance(value, (set, frozenset)) else value)
    if isinstance(value, ApprovalPolicy):
        return Approvals(policy=value, handler=value.approval_handler)
    if isinstance(value, bool) or not (callable(value) or hasattr(value, "request_approval")):
        raise ConfigurationError(
            f"approval is {value!r}; give an ApprovalPolicy, a list of tool patterns, or a handler for servers that ask"
        )
    return Approvals(handler=as_handler(value))
