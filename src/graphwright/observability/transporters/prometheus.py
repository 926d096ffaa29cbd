"""Offer figures to Prometheus: counters and durations in its text format, at a port of this machine."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from graphwright.observability.base import TimelineEntry, Transporter

__all__ = ["PrometheusTransporter"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_MOST_SERIES = 2000
_OTHERS = "(others)"
_HELP = {
    "graphwright_runs_total": ("counter", "Runs that ended, by how they ended."),
    "graphwright_model_calls_total": ("counter", "Model calls."),
    "graphwright_tool_calls_total": ("counter", "Tool calls."),
    "graphwright_tokens_total": ("counter", "Tokens of runs; cached ones are a part of input, reasoning of output."),
    "graphwright_run_duration_seconds": ("histogram", "How long runs took."),
    "graphwright_model_call_duration_seconds": ("histogram", "How long model calls took."),
    "graphwright_tool_call_duration_seconds": ("histogram", "How long tool calls took."),
}

Labels = tuple[tuple[str, str], ...]


class PrometheusTransporter(Transporter):
    """Counts entries, and answers `GET /metrics` on 127.0.0.1."""

    name = "prometheus"

    def __init__(self, port: int | None = None) -> None:
        """Count, and with a `port` serve the figures there; 0 takes a free one."""
        self._lock = threading.Lock()
        self._counters: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, list[float]]] = {}
        self._server = None if port is None else _serve(self, port)

    @property
    def port(self) -> int | None:
        """The port at which the figures are read; `None` when they are not served."""
        return None if self._server is None else int(self._server.server_address[1])

    def export(self, entry: TimelineEntry) -> None:
        """Count one entry."""
        data, agent = entry.data, entry.agent_id
        failed = "true" if entry.error else "false"
        with self._lock:
            if entry.event_type == "model.call":
                self._count("graphwright_model_calls_total", 1, agent=agent, error=failed)
                self._observe("graphwright_model_call_duration_seconds", entry, agent=agent)
            elif entry.event_type == "tool.call":
                tool = str(data.get("tool"))
                self._count("graphwright_tool_calls_total", 1, agent=agent, tool=tool, error=failed)
                self._observe("graphwright_tool_call_duration_seconds", entry, agent=agent, tool=tool)
            elif entry.event_type == "run.end" and not data.get("is_part"):
                self._count("graphwright_runs_total", 1, agent=agent, status=str(data.get("status")))
                self._observe("graphwright_run_duration_seconds", entry, agent=agent)
                for kind in ("input", "output", "cached", "reasoning"):
                    tokens = (data.get("usage") or {}).get(f"{kind}_tokens")
                    if tokens:
                        self._count("graphwright_tokens_total", tokens, agent=agent, type=kind)

    def text(self) -> str:
        """Return the figures in Prometheus' text format."""
        lines: list[str] = []
        with self._lock:
            for name, (kind, told) in _HELP.items():
                lines += [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]
                for labels, value in self._counters.get(name, {}).items():
                    lines.append(f"{name}{_shown(labels)} {value:.17g}")
                for labels, cells in self._histograms.get(name, {}).items():
                    bounds = [f"{bound:g}" for bound in _BUCKETS] + ["+Inf"]
                    for bound, count in zip(bounds, cells, strict=False):
                        lines.append(f"{name}_bucket{_shown((*labels, ('le', bound)))} {count:g}")
                    lines.append(f"{name}_sum{_shown(labels)} {cells[-1]:.17g}")
                    lines.append(f"{name}_count{_shown(labels)} {cells[-2]:g}")
        return "\n".join(lines) + "\n"

    async def close(self) -> None:
        """Stop serving; the figures stay readable by `text`."""
        if self._server is not None:
            server, self._server = self._server, None
            server.shutdown()
            server.server_close()

    def _count(self, name: str, value: float, **labels: str) -> None:
        series = self._counters.setdefault(name, {})
        key = _bounded(series, labels)
        series[key] = series.get(key, 0) + value

    def _observe(self, name: str, entry: TimelineEntry, **labels: str) -> None:
        if entry.duration_ms is None:
            return
        seconds = entry.duration_ms / 1000
        series = self._histograms.setdefault(name, {})
        cells = series.setdefault(_bounded(series, labels), [0.0] * (len(_BUCKETS) + 2))
        for place, bound in enumerate((*_BUCKETS, float("inf"))):
            if seconds <= bound:
                cells[place] += 1
        cells[-1] += seconds


def _bounded(series: dict[Labels, Any], labels: dict[str, str]) -> Labels:
    """Return the key of a series. Names that a model makes up would go on without end, so they share one."""
    key = tuple(labels.items())
    return key if key in series or len(series) < _MOST_SERIES else tuple((name, _OTHERS) for name in labels)


def _shown(labels: Labels) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _serve(figures: PrometheusTransporter, port: int) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.split("?")[0] == "/metrics"
            body = figures.text().encode() if found else b"the figures are at /metrics\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: a scrape is no news."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), name="graphwright-prometheus", daemon=True).start()
    return server
