"""Make the import paths of the reference API, `promptise.*`, lead to the modules of this package.

Importing this module is the request; after it `import promptise.engine.graph` gives `graphwright.engine.graph`, the
very same module. Nothing of ours is imported before it is asked for, and a module of ours that this release does
not have says so when it is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from graphwright.compat._aliases import ModuleOffError, check_free, forget

__all__ = ["ModuleOffError", "install", "uninstall"]

_THEIRS = "promptise"
_OURS = "graphwright"


class _AliasFinder(MetaPathFinder):
    """Finds every `promptise` module under the same path in this package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _THEIRS and not fullname.startswith(_THEIRS + "."):
            return None
        ours = _OURS + fullname.removeprefix(_THEIRS)
        if not _exists(ours):
            raise ModuleOffError(
                f"{fullname!r} leads to {ours!r}, which this release of Graphwright does not have; "
                "leave it out, or update Graphwright"
            )
        return ModuleSpec(fullname, _AliasLoader(ours))


class _AliasLoader(Loader):
    """Puts a module of ours in the place of a freshly made one."""

    def __init__(self, ours: str) -> None:
        self.ours = ours

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes what is in `sys.modules` when this returns.
        sys.modules[module.__name__] = import_module(self.ours)


def _exists(name: str) -> bool:
    if any(part.startswith("_") for part in name.split(".")):
        return False
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        # The parent is a plain module, so it has no submodules.
        return False


def install() -> None:
    """Make `promptise` and everything under it lead here; does nothing when it already does.

    Raises:
        ConfigurationError: a real `promptise` package is loaded or installed.
    """
    if any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        return
    check_free(_THEIRS, __name__)
    # Ahead of the path finder, which would load our files a second time under the other name.
    sys.meta_path.insert(0, _AliasFinder())


def uninstall() -> None:
    """Take the paths away again; modules and classes that were already imported go on working."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _AliasFinder)]
    forget(_THEIRS)


install()
