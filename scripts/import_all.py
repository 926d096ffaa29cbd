"""Import every public module of the installed package; none may need an extra for that."""

from __future__ import annotations

import importlib
import pkgutil

import graphwright

found = [info.name for info in pkgutil.walk_packages(graphwright.__path__, "graphwright.")]
names = [name for name in found if "._" not in name]
for name in names:
    importlib.import_module(name)
print(f"imported {len(names)} modules from {graphwright.__path__[0]}")
