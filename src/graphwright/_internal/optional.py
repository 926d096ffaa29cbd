"""Look for packages that need not be installed, and load from them only when they are."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["is_installed", "load"]


def is_installed(module: str) -> bool:
    """Return whether `module` could be imported, without importing it (its parent packages are)."""
    if sys.modules.get(module) is not None:
        return True
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def load(path: str) -> Any:
    """Return what `"package.module:name"` names.

    Raises:
        ImportError: the module is not there, or cannot be imported.
    """
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
