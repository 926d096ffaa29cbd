"""What the exit code of a command says."""

from __future__ import annotations

from graphwright.cli._signals import was_terminated
from graphwright.exceptions import ConfigurationError, FeatureOffError, NodeNotFoundError

__all__ = ["ANSWERED", "BROKEN_PIPE", "INTERRUPTED", "NO_ANSWER", "PAUSED", "TERMINATED", "USAGE", "exit_code_of"]

ANSWERED = 0
NO_ANSWER = 1
USAGE = 2
PAUSED = 3
"""The run waits for answers."""
INTERRUPTED = 130
BROKEN_PIPE = 141
"""What a shell reports for a program that wrote to a pipe without a reader."""
TERMINATED = 143
"""What a shell reports for a program that SIGTERM ended."""


def exit_code_of(error: BaseException) -> int:
    """Return the exit code for what ended a command: is it for the user to correct the call, or is there no answer?"""
    if isinstance(error, (ConfigurationError, FeatureOffError, NodeNotFoundError)):
        return USAGE
    if isinstance(error, KeyboardInterrupt):
        return TERMINATED if was_terminated() else INTERRUPTED
    return NO_ANSWER
