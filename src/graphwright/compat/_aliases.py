"""What the aliases of other packages share: an installed package is never hidden, and what is missing says so."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from graphwright.exceptions import ConfigurationError, FeatureOffError

__all__ = ["ModuleOffError", "check_free", "forget"]


class ModuleOffError(FeatureOffError, ModuleNotFoundError):
    """A module of the reference API was imported that this release does not have."""


def check_free(theirs: str, asked_by: str) -> None:
    """Refuse to take the name `theirs` away from a package that is there.

    Raises:
        ConfigurationError: a package of that name is loaded or installed.
    """
    loaded = sys.modules.get(theirs)
    if loaded is not None:
        raise ConfigurationError(
            f"the module {theirs!r} is already loaded from {getattr(loaded, '__file__', None)!r}; "
            f"import {asked_by!r} before it, or not at all"
        )
    installed = find_spec(theirs)
    if installed is not None:
        raise ConfigurationError(
            f"the package {theirs!r} is installed at {installed.origin!r} and would be hidden; "
            f"uninstall it, or import from 'graphwright' instead"
        )


def forget(theirs: str) -> None:
    """Take the modules below `theirs` out of those that are loaded."""
    for name in [name for name in sys.modules if name == theirs or name.startswith(theirs + ".")]:
        del sys.modules[name]
