"""What agents did: a record with figures, and the places where it can go."""

from graphwright.observability.base import ObserveLevel, TimelineEntry, Transporter, TransporterType
from graphwright.observability.collector import ObservabilityCollector
from graphwright.observability.config import ObservabilityConfig
from graphwright.observability.tracing import Tracing
from graphwright.observability.transporters.prometheus import PrometheusTransporter
from graphwright.observability.watching import Watch, watch_of

__all__ = [
    "ObservabilityCollector",
    "ObservabilityConfig",
    "ObserveLevel",
    "PrometheusTransporter",
    "TimelineEntry",
    "Tracing",
    "Transporter",
    "TransporterType",
    "Watch",
    "watch_of",
]
