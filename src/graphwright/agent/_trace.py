"""Print tool calls while they happen, for `trace_tools=True`."""

from __future__ import annotations

from graphwright._internal.jsonio import dumps
from graphwright.messages import text_of
from graphwright.types import ToolResult

__all__ = ["print_tool_result"]

_CHARS = 500


def print_tool_result(result: ToolResult) -> None:
    """Print one call with its result to stdout."""
    mark = "reused" if result.reused else "ok" if result.success else "error"
    text = text_of(result.message)
    shown = text if len(text) <= _CHARS else f"{text[:_CHARS]}... ({len(text)} characters)"
    print(f"[tool] {result.call.name}({dumps(result.args)}) {mark} {result.duration_ms:.0f} ms -> {shown}", flush=True)
