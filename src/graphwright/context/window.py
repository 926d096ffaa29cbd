"""How much a model can be shown, as far as it says so itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["window_of"]

_LEVELS = 4
_KEYS = ("max_input_tokens", "context_window")
_BELOW = ("model", "bound")


def window_of(model: Any) -> int | None:
    """Return the window of a model in tokens, from the profile of its LangChain class; `None` when it does not say."""
    for _ in range(_LEVELS):
        profile = getattr(model, "profile", None)
        if isinstance(profile, Mapping):
            found = next((profile[key] for key in _KEYS if _is_size(profile.get(key))), None)
            if found is not None:
                return int(found)
        own: Any = getattr(model, "context_window", None)
        if _is_size(own):
            return int(own)
        # A port around a LangChain model, or a bound one around the model itself.
        inner = next(
            (below for name in _BELOW if not isinstance(below := getattr(model, name, None), (str, type(None)))), None
        )
        if inner is None:
            return None
        model = inner
    return None


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
