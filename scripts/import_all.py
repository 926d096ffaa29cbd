"""Import every module of the installed package; none may need an extra for that."""

from __future__ import annotations

import importlib
import pkgutil

import graphwright

names = [info.name for info in pkgutil.walk_packages(graphwright.__path__, "graphwright.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(f"imported {len(names)} modules from {graphwright.__path__[0]}")
