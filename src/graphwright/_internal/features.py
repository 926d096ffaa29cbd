"""Reach for a part of the package that may not be there yet, with a plain answer when it is not."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from graphwright.exceptions import FeatureOffError

__all__ = ["feature"]


def feature(module: str, name: str, asked_by: str) -> Any:
    """Return `module.name`.

    Raises:
        FeatureOffError: this release does not have it.
    """
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise FeatureOffError(f"{asked_by} needs {name}, which this release does not have") from error
