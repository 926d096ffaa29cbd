"""Write the record to a file: JSON, JSON lines, or a page that a browser shows."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from graphwright.observability.base import TimelineEntry, Transporter
from graphwright.observability.collector import ObservabilityCollector, json_line

__all__ = [
    "FileTransporter",
    "JsonLinesTransporter",
    "file_name",
    "html_page",
    "html_transporter",
    "json_transporter",
    "write_text",
]


class FileTransporter(Transporter):
    """Writes the whole record to one file each time it is flushed, and leaves no half-written one."""

    def __init__(self, name: str, path: Path, render: Callable[[], str]) -> None:
        self.name = name
        self.path = path
        self._render = render

    async def flush(self) -> None:
        """Write the file."""
        await asyncio.to_thread(lambda: write_text(self.path, self._render()))


class JsonLinesTransporter(Transporter):
    """Adds each entry to a file, in batches: when `most` wait, and when it is flushed."""

    name = "jsonl"

    def __init__(self, path: Path, *, most: int = 256) -> None:
        self.path = path
        self._most = most
        self._waiting: list[TimelineEntry] = []

    def export(self, entry: TimelineEntry) -> None:
        """Keep an entry for the next batch."""
        self._waiting.append(entry)
        if len(self._waiting) >= self._most:
            self._write()

    async def flush(self) -> None:
        """Write what waits."""
        await asyncio.to_thread(self._write)

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write("".join(json_line(entry) + "\n" for entry in waiting))


def json_transporter(collector: ObservabilityCollector, folder: Path) -> FileTransporter:
    """Return what writes the record as JSON."""
    return FileTransporter("json", folder / f"{file_name(collector)}.json", lambda: collector.to_json(indent=2))


def html_transporter(collector: ObservabilityCollector, folder: Path) -> FileTransporter:
    """Return what writes the record as a page."""
    title = f"Agent Observability Report: {collector.session_name}"
    return FileTransporter("html", folder / f"{file_name(collector)}.html", lambda: html_page(collector, title))


def file_name(collector: ObservabilityCollector) -> str:
    """Return a file name for a record, which no other record has."""
    session = re.sub(r"[^\w.-]+", "_", collector.session_name).strip("._") or "graphwright"
    return f"{session}-{collector.record_id}"


def write_text(path: Path, text: str) -> None:
    """Write a file, in a folder that is made where it is missing; a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


_STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;"
    "padding:0 1rem}table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;"
    "border-bottom:1px solid #8884;vertical-align:top}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0}"
    ".error{color:#c22}"
)


def html_page(collector: ObservabilityCollector, title: str) -> str:
    """Return the record as one page that needs nothing else; everything recorded stays text."""
    stats = collector.get_stats()
    figures = "".join(
        f"<tr><th scope=row>{escape(name.replace('_', ' '))}</th><td>{escape(str(value))}</td></tr>"
        for name, value in stats.items()
        if not isinstance(value, dict)
    )
    rows = "".join(_row(entry) for entry in collector.get_timeline())
    heads = "".join(f"<th scope=col>{name}</th>" for name in ("#", "What", "Agent", "Node", "ms", "Details"))
    return (
        f'<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main><h1>{escape(title)}</h1>"
        f"<h2>Figures</h2><table>{figures}</table>"
        f"<h2>Timeline</h2><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></main></body></html>\n"
    )


def _row(entry: TimelineEntry) -> str:
    node = "/".join(part for part in (entry.path, entry.node) if part)
    took = "" if entry.duration_ms is None else f"{entry.duration_ms:.1f}"
    error = f"<p class=error>{escape(entry.error)}</p>" if entry.error else ""
    details: Any = json.dumps(entry.data, default=str, ensure_ascii=False, indent=1)
    shown = f"<details><summary>data</summary><pre>{escape(details)}</pre></details>" if entry.data else ""
    cells = (str(entry.seq), entry.event_type, entry.agent_id, node, took)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + f"<td>{error}{shown}</td></tr>"
