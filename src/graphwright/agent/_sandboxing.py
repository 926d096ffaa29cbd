"""What `sandbox=` gives an agent: the manager of its sandboxes and the tools that use it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from graphwright.exceptions import ConfigurationError

__all__ = ["SandboxUse", "sandbox_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxUse:
    """The sandboxes of an agent."""

    manager: Any
    """A `SandboxManager` that was started."""

    owned: bool
    """Whether the agent made it, and so ends it."""

    tools: list[Callable[..., Awaitable[Any]]] = field(default_factory=list)


async def sandbox_of(value: Any) -> SandboxUse | None:
    """Return what `sandbox=` asks for, after it was tried; `None` where it asks for none.

    Raises:
        ConfigurationError: it fits nothing that can be asked for.
        SandboxUnavailableError: it cannot be started here.
    """
    if value is None or value is False or (isinstance(value, dict) and not value):
        return None
    from graphwright.sandbox import SandboxBackend, SandboxConfig, SandboxManager, sandbox_tools

    if isinstance(value, SandboxManager):
        manager, owned = value, False
    elif isinstance(value, SandboxBackend) and not isinstance(value, type):
        manager, owned = SandboxManager(backend=value), True
    else:
        try:
            config = SandboxConfig.of(value)
        except TypeError as error:
            raise ConfigurationError(f"sandbox is {value!r}: {error}") from error
        manager, owned = SandboxManager(config), True
    await manager.start()
    return SandboxUse(manager=manager, owned=owned, tools=sandbox_tools(manager))
