"""What the tokens of a model cost, from a price table that is installed with a package and read offline."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from graphwright.exceptions import ConfigurationError, MissingExtraError

__all__ = ["check_price", "price_of"]


def check_price(model: str) -> None:
    """Make sure that `model` has a price.

    Raises:
        ConfigurationError: the table does not know it.
        MissingExtraError: there is no table.
    """
    _look_up(model)


def price_of(model: str, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
    """Return the US dollars for tokens of `model`; `cached_tokens` are a part of `input_tokens`.

    Raises:
        ConfigurationError: the table does not know the model.
        MissingExtraError: there is no table.
    """
    table = _table()
    provider, name = _look_up(model)
    usage = table.Usage(
        input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=min(cached_tokens, input_tokens)
    )
    return float(table.calc_price(usage, model_ref=name, provider_id=provider).total_price)


def _table() -> Any:
    try:
        import genai_prices
    except ImportError:
        what = "a cost budget without cost_per_1k_tokens="
        raise MissingExtraError(what, extra="prices", package="genai-prices") from None
    return genai_prices


@lru_cache(maxsize=256)
def _look_up(model: str) -> tuple[str | None, str]:
    """Return the provider and the name under which the table knows `model`, which may be `"provider:name"`."""
    table = _table()
    provider, colon, name = model.partition(":")
    for found in [(provider, name), (None, name), (None, model)] if colon else [(None, model)]:
        try:
            table.calc_price(table.Usage(input_tokens=1, output_tokens=1), model_ref=found[1], provider_id=found[0])
        except LookupError:
            continue
        return found
    raise ConfigurationError(
        f"no price is known for the model {model!r}; give BudgetHook cost_per_1k_tokens=, or set no max_cost_usd"
    )
