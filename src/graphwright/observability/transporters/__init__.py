"""Where what is recorded goes: one file for each kind of place."""

from __future__ import annotations

from pathlib import Path

from graphwright.observability.base import Transporter, TransporterType
from graphwright.observability.collector import ObservabilityCollector
from graphwright.observability.config import ObservabilityConfig
from graphwright.observability.transporters.files import (
    JsonLinesTransporter,
    file_name,
    html_transporter,
    json_transporter,
)
from graphwright.observability.transporters.logs import CallbackTransporter, ConsoleTransporter, LogTransporter

__all__ = ["transporter_of"]


def transporter_of(
    kind: TransporterType, collector: ObservabilityCollector, config: ObservabilityConfig
) -> Transporter | None:
    """Return the transporter of a kind; `None` for OTLP, whose spans are made from runs and not from entries.

    Raises:
        ConfigurationError: the configuration does not fit it.
        MissingExtraError: it needs a package that is not installed.
    """
    folder = Path(config.output_dir)
    match kind:
        case TransporterType.HTML:
            return html_transporter(collector, folder)
        case TransporterType.JSON:
            return json_transporter(collector, folder)
        case TransporterType.JSON_LINES:
            return JsonLinesTransporter(folder / f"{file_name(collector)}.jsonl")
        case TransporterType.STRUCTURED_LOG:
            return LogTransporter(config.log_file)
        case TransporterType.CONSOLE:
            return ConsoleTransporter(collector, live=config.console_live)
        case TransporterType.CALLBACK:
            assert config.on_event is not None
            return CallbackTransporter(config.on_event)
        case TransporterType.PROMETHEUS:
            from graphwright.observability.transporters.prometheus import PrometheusTransporter

            return PrometheusTransporter(config.prometheus_port)
        case TransporterType.WEBHOOK:
            from graphwright._internal.posting import Poster
            from graphwright.observability.transporters.webhook import WebhookTransporter

            assert config.webhook_url is not None
            return WebhookTransporter(
                Poster(
                    config.webhook_url,
                    asked_by="the webhook transporter",
                    secret=config.webhook_secret,
                    headers=config.webhook_headers,
                    allow_private_networks=config.allow_private_networks,
                )
            )
        case TransporterType.OTLP:
            return None
