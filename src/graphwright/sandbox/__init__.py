"""Sandboxes: where commands and programs run without reaching the machine of the agent."""

from graphwright.exceptions import SandboxUnavailableError
from graphwright.sandbox.base import (
    CommandResult,
    Enforcement,
    SandboxBackend,
    SandboxConfig,
    SandboxFactory,
    SandboxSession,
)
from graphwright.sandbox.bubblewrap import BubblewrapBackend
from graphwright.sandbox.docker import DockerBackend
from graphwright.sandbox.manager import SandboxManager, backends
from graphwright.sandbox.monty import MontyBackend
from graphwright.sandbox.tools import sandbox_tools

__all__ = [
    "BubblewrapBackend",
    "CommandResult",
    "DockerBackend",
    "Enforcement",
    "MontyBackend",
    "SandboxBackend",
    "SandboxConfig",
    "SandboxFactory",
    "SandboxManager",
    "SandboxSession",
    "SandboxUnavailableError",
    "backends",
    "sandbox_tools",
]
