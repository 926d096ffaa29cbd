from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from graphwright import build_agent
from graphwright.testing import ScriptedModel, calls, says

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="install the extra 'otel'")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@pytest.fixture
def receiver() -> Iterator[Any]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.got.append(self.rfile.read(int(self.headers["Content-Length"])))  # type: ignore[attr-defined]
            self.send_response(200)
            self.send_header("Content-Length", "0")
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


async def test_spans_arrive_at_a_collector_when_the_agent_is_shut_down(receiver: Any) -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    endpoint = f"http://127.0.0.1:{receiver.server_address[1]}/v1/traces"
    agent = await build_agent(
        model=ScriptedModel([calls("add", a=1, b=2), says("3")]),
        extra_tools=[add],
        observe={"transporters": ["otlp"], "otlp_endpoint": endpoint},
        observer_agent_id="adder",
    )
    await agent.ainvoke("1 + 2?")
    await agent.shutdown()

    spans = [
        span
        for body in receiver.got
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    (root,) = [span for span in spans if not span.parent_span_id]
    assert root.name == "invoke_agent adder"
    below = [span for span in spans if span.parent_span_id == root.span_id]
    assert sorted(span.name.split()[0] for span in below) == ["chat", "chat", "execute_tool"]
    assert len({span.trace_id for span in spans}) == 1
