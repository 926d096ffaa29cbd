"""Say what is missing before a model string can be used, without asking anybody over the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphwright.exceptions import ConfigurationError
from graphwright.models.providers import LOCAL, is_available, missing_needs, parse_model_string

__all__ = ["ModelCheck", "check_model"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCheck:
    """What was found out about a model string."""

    model: str

    provider: str
    """The provider's name in the table; empty when there is none."""

    problems: tuple[str, ...] = ()
    """What is missing, one sentence each; empty when the model can be used."""

    @property
    def ok(self) -> bool:
        """Whether nothing is missing."""
        return not self.problems


def check_model(model: str, **options: Any) -> ModelCheck:
    """Return what is missing to use a model string with these options: the provider, its package, its variables."""
    try:
        parsed = parse_model_string(model)
    except ConfigurationError as error:
        return ModelCheck(model=model, provider="", problems=(str(error),))
    provider = parsed.provider
    if provider is None:
        return ModelCheck(model=model, provider=LOCAL, problems=_local_problems(parsed.name, options))
    problems = []
    if not is_available(provider):
        problems.append(
            f"the package {provider.distribution!r} is not installed; "
            f"install it with: pip install 'graphwright[{provider.extra}]'"
        )
    given = options if parsed.base_url is None else {**options, "base_url": parsed.base_url}
    problems += [str(need) for need in missing_needs(provider, given)]
    return ModelCheck(model=model, provider=provider.name, problems=tuple(problems))


def _local_problems(name: str, options: dict[str, Any]) -> tuple[str, ...]:
    from graphwright.models.local import missing_for_local

    return tuple(missing_for_local(name, options.get("path")))
