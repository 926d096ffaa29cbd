"""What is recorded of an agent's runs, and where it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from graphwright.exceptions import ConfigurationError
from graphwright.observability.base import ObserveLevel, TimelineEntry, Transporter, TransporterType

__all__ = ["ObservabilityConfig"]


@dataclass(frozen=True, kw_only=True)
class ObservabilityConfig:
    """How an agent is watched. Nothing leaves the process unless a transporter that does so is named."""

    level: ObserveLevel = ObserveLevel.STANDARD

    session_name: str = "graphwright"
    """Names the record and the files that are written."""

    record_prompts: bool | None = None
    """Whether prompts and replies are kept; `None` keeps them at the level `FULL`."""

    record_tool_io: bool = True
    """Whether arguments and results of tools are kept, from the level `STANDARD` on."""

    redact_sensitive: bool = True
    """Whether credentials are taken out before anything is kept."""

    max_entries: int = 100_000
    """The most entries kept; the oldest make room."""

    transporters: tuple[TransporterType | Transporter, ...] = (TransporterType.HTML,)

    output_dir: str | Path = "./reports"
    """Where files are written, when the agent is shut down."""

    log_file: str | Path | None = None
    """The file of the log transporter; `None` uses the logger `graphwright.observability.record`."""

    console_live: bool = False
    """Whether the console shows each entry as it comes, and not a summary at the end; it adds that transporter."""

    webhook_url: str | None = None

    webhook_headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    webhook_secret: str | None = field(default=None, repr=False)
    """Signs what is posted."""

    allow_private_networks: bool = False
    """Whether the webhook may lead to a private network."""

    otlp_endpoint: str | None = None
    """Where spans are sent by OTLP over HTTP; `None` uses the tracer provider that the program has set up."""

    prometheus_port: int = 9090
    """Port on this machine at which the figures are read; 0 takes a free one."""

    on_event: Callable[[TimelineEntry], Any] | None = None
    """Called with each entry by the callback transporter."""

    correlation_id: str | None = None
    """Goes into every entry."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", _one_of(ObserveLevel, "level", self.level))
        given = self.transporters
        if isinstance(given, (str, TransporterType, Transporter)):
            given = (given,)
        chosen = tuple(
            item if isinstance(item, Transporter) else _one_of(TransporterType, "transporters", item) for item in given
        )
        if self.console_live and TransporterType.CONSOLE not in chosen:
            chosen = (*chosen, TransporterType.CONSOLE)
        object.__setattr__(self, "transporters", chosen)
        if isinstance(self.max_entries, bool) or not isinstance(self.max_entries, int) or self.max_entries < 1:
            raise ConfigurationError(f"max_entries is {self.max_entries!r}; give a whole number above 0")
        if TransporterType.WEBHOOK in chosen and not self.webhook_url:
            raise ConfigurationError("transporters names the webhook; give webhook_url= as well")
        if TransporterType.CALLBACK in chosen and not callable(self.on_event):
            raise ConfigurationError("transporters names the callback; give on_event= as well")

    @property
    def keeps_prompts(self) -> bool:
        """Whether prompts and replies are kept."""
        return self.level is ObserveLevel.FULL if self.record_prompts is None else self.record_prompts

    @property
    def keeps_tool_io(self) -> bool:
        """Whether arguments and results of tools are kept."""
        return self.record_tool_io and self.level in (ObserveLevel.STANDARD, ObserveLevel.FULL)

    @classmethod
    def coerce(cls, given: Any) -> ObservabilityConfig | None:
        """Return the configuration that `observe=` asks for: True, one of these, or a dict of its fields.

        `None`, False and the level `OFF` give `None`: nothing is recorded.

        Raises:
            ConfigurationError: it is anything else, or a field does not fit.
        """
        if given is None or given is False:
            return None
        if given is True:
            return cls()
        if isinstance(given, Mapping):
            known = [entry.name for entry in fields(cls)]
            unknown = sorted(set(given) - set(known))
            if unknown:
                raise ConfigurationError(f"observe has no field {unknown[0]!r}; it has {', '.join(known)}")
            given = cls(**given)
        if not isinstance(given, cls):
            raise ConfigurationError(
                f"observe is {given!r}; give True, an ObservabilityConfig or a dict of its fields, or None"
            )
        return None if given.level is ObserveLevel.OFF else given


def _one_of(kind: Any, name: str, value: Any) -> Any:
    try:
        return kind(value.lower() if type(value) is str else value)
    except ValueError:
        known = ", ".join(repr(item.value) for item in kind)
        raise ConfigurationError(f"{name} has {value!r} in it; use one of {known}") from None
