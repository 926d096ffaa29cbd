from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from graphwright import build_agent
from graphwright.observability import ObservabilityCollector, PrometheusTransporter, TransporterType
from graphwright.observability.transporters.logs import ConsoleTransporter
from graphwright.testing import ScriptedModel, calls, says


def shout(text: str) -> str:
    """Shout."""
    return f"<script>alert('{text}')</script>\x1b[31m\nnew line"


async def observed(**options: Any) -> Any:
    model = ScriptedModel([calls("shout", text="hi"), says("done")])
    agent = await build_agent(model=model, extra_tools=[shout], observe={"session_name": "my run/1", **options})
    await agent.ainvoke("go")
    return agent


@pytest.fixture
def receiver() -> Iterator[Any]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.got.append((dict(self.headers), json.loads(body)))  # type: ignore[attr-defined]
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.got = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


async def test_files_are_written_at_shutdown_and_not_before(tmp_path: Path) -> None:
    agent = await observed(transporters=["html", "json", "jsonl"], output_dir=tmp_path / "out")
    assert not (tmp_path / "out").exists()

    await agent.shutdown()

    name = f"my_run_1-{agent.collector.record_id}"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"{name}.html", f"{name}.json", f"{name}.jsonl",
    ]  # fmt: skip
    record = json.loads((tmp_path / "out" / f"{name}.json").read_text())
    assert [entry["event_type"] for entry in record["entries"]] == [
        "run.start", "model.call", "tool.call", "model.call", "run.end",
    ]  # fmt: skip
    lines = (tmp_path / "out" / f"{name}.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == record["entries"]


async def test_a_report_is_one_page_in_which_what_tools_said_stays_text(tmp_path: Path) -> None:
    agent = await observed(transporters=[])
    path = tmp_path / "deep" / "report.html"

    assert agent.generate_report(path, title="A <b>title</b>") == str(path)

    page = path.read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<h1>A &lt;b&gt;title&lt;/b&gt;</h1>" in page
    assert "http" not in page
    await agent.shutdown()


async def test_log_lines_are_keys_and_values_that_a_result_cannot_break(caplog: Any) -> None:
    with caplog.at_level(logging.INFO, logger="graphwright.observability.record"):
        agent = await observed(transporters=["log"])
    (line,) = [record for record in caplog.records if "tool.call" in record.getMessage()]

    assert "\n" not in line.getMessage()
    assert f'run="{agent.collector.get_timeline()[0].run_id}" node="' in line.getMessage()
    assert line.graphwright["tool"] == "shout"
    assert line.graphwright["caller"] == "::anonymous"
    await agent.shutdown()


async def test_a_log_file_has_the_same_lines(tmp_path: Path) -> None:
    agent = await observed(transporters=["log"], log_file=tmp_path / "agent.log")
    await agent.shutdown()
    lines = (tmp_path / "agent.log").read_text().splitlines()
    assert [line.split('event="')[1].split('"')[0] for line in lines] == [
        "run.start", "model.call", "tool.call", "model.call", "run.end",
    ]  # fmt: skip


async def test_the_console_shows_no_escape_sequences() -> None:
    collector, out = ObservabilityCollector(), io.StringIO()
    live = ConsoleTransporter(collector, live=True, file=out)
    collector.add_transporter(live)
    collector.record("tool.call", tool="x\x1b[31m", error="bad\nthing", duration_ms=3)
    assert out.getvalue() == "tool.call     x [31m 3 ms  bad thing\n"

    summary = io.StringIO()
    await ConsoleTransporter(collector, live=False, file=summary).flush()
    assert summary.getvalue().startswith("runs: 0  model calls: 0  tool calls: 1  tool errors: 1")


async def test_prometheus_reads_figures_at_the_port() -> None:
    agent = await observed(transporters=[TransporterType.PROMETHEUS], prometheus_port=0)
    (served,) = agent.collector.transporters

    text = await asyncio.to_thread(_read, f"http://127.0.0.1:{served.port}/metrics")

    lines = text.splitlines()
    name = agent.graph.name
    assert f'graphwright_runs_total{{agent="{name}",status="completed"}} 1' in lines
    assert f'graphwright_tool_calls_total{{agent="{name}",tool="shout",error="false"}} 1' in lines
    assert f'graphwright_run_duration_seconds_bucket{{agent="{name}",le="+Inf"}} 1' in lines
    assert f'graphwright_run_duration_seconds_count{{agent="{name}"}} 1' in lines
    await agent.shutdown()
    assert served.port is None


def _read(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        text: str = answer.read().decode()
        return text


def test_names_that_a_model_makes_up_do_not_grow_without_end() -> None:
    figures, collector = PrometheusTransporter(), ObservabilityCollector(max_entries=10)
    collector.add_transporter(figures)
    for number in range(3000):
        collector.record("tool.call", tool=f'tool"{number}\n', duration_ms=1)
    assert len(collector.get_stats()["tools"]) == 1001
    assert figures.text().count("graphwright_tool_calls_total{") == 2001
    assert r'tool="tool\"0\n"' in figures.text()


async def test_a_callback_gets_each_entry_and_its_failures_stay_its_own() -> None:
    seen = []

    async def take(entry: Any) -> None:
        seen.append(entry.event_type)
        raise ValueError("no")

    agent = await observed(transporters=["callback"], on_event=take)
    await agent.shutdown()
    assert seen == ["run.start", "model.call", "tool.call", "model.call", "run.end"]


async def test_a_webhook_gets_signed_batches(receiver: Any) -> None:
    url = f"http://127.0.0.1:{receiver.server_address[1]}/"
    agent = await observed(
        transporters=["webhook"], webhook_url=url, webhook_secret="s3", webhook_headers={"X-A": "b"},
        allow_private_networks=True,
    )  # fmt: skip
    await agent.shutdown()

    entries = [entry["event_type"] for _, body in receiver.got for entry in body["entries"]]
    assert entries == ["run.start", "model.call", "tool.call", "model.call", "run.end"]
    headers = receiver.got[0][0]
    assert headers["X-A"] == "b"
    assert headers["X-Webhook-Signature"].startswith("v1=")


async def test_a_webhook_in_a_private_network_is_not_reached_and_the_run_goes_on(receiver: Any, caplog: Any) -> None:
    url = f"http://127.0.0.1:{receiver.server_address[1]}/"
    agent = await observed(transporters=["webhook"], webhook_url=url)
    await agent.shutdown()
    assert receiver.got == []
    assert "leads to a private or reserved network" in caplog.text
    assert "5 entries were not delivered" in caplog.text


async def test_two_records_of_one_name_are_two_files(tmp_path: Path) -> None:
    names = set()
    for _ in range(2):
        agent = await observed(transporters=["json"], output_dir=tmp_path)
        await agent.shutdown()
        names.add(f"my_run_1-{agent.collector.record_id}.json")
    assert {path.name for path in _files(tmp_path)} == names


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir())
