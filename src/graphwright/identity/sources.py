"""Credentials that are already there: in a file, in the environment, or behind a function of yours."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import ConfigurationError, IdentityError
from graphwright.identity._tokens import checked
from graphwright.identity.base import Credential

__all__ = ["CallableSource", "EnvironmentSource", "FileSource"]

_MOST_BYTES = 100_000


class FileSource:
    """A token that somebody else keeps fresh in a file, as Kubernetes does; one token for every audience."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    async def fetch(self, audience: str | None) -> Credential:
        """Read the file."""
        try:
            text = await run_in_thread(self._read)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise IdentityError(f"the token file {str(self.path)!r} cannot be read: {reason}") from error
        return checked(text, f"the token file {str(self.path)!r}")

    def _read(self) -> str:
        with self.path.open(encoding="utf-8") as file:
            return file.read(_MOST_BYTES)


class EnvironmentSource:
    """A token in an environment variable; one token for every audience."""

    def __init__(self, variable: str) -> None:
        self.variable = variable

    async def fetch(self, audience: str | None) -> Credential:
        """Read the variable."""
        if not os.environ.get(self.variable):
            raise IdentityError(f"the environment variable {self.variable!r} holds no token; set it")
        return checked(os.environ[self.variable], f"the environment variable {self.variable!r}")


class CallableSource:
    """A function of yours: `function(audience)`, sync or async, that returns a token or a `Credential`."""

    def __init__(self, function: Callable[[str | None], Any]) -> None:
        if not callable(function):
            raise ConfigurationError(f"the credential is {function!r}; give a function that takes an audience")
        self._function = function

    async def fetch(self, audience: str | None) -> Credential:
        """Call the function; a sync one runs in a thread."""
        try:
            if inspect.iscoroutinefunction(self._function):
                found = await self._function(audience)
            else:
                found = await run_in_thread(self._function, audience)
                found = await found if inspect.isawaitable(found) else found
        except IdentityError:
            raise
        except Exception as error:  # foreign code; what it says may hold a secret
            raise IdentityError(f"the function for credentials failed ({type(error).__name__})") from error
        if isinstance(found, Credential):
            return checked(found.value, "the function for credentials", found.expires_at)
        return checked(found, "the function for credentials")
