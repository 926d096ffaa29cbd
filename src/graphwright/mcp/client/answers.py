"""Read what a person answers to a server's question, in whichever form it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphwright.exceptions import InterruptError
from graphwright.interrupts import Interrupt
from graphwright.tools.json_schema import schema_problems

__all__ = ["check_input", "gate_field", "read_input"]

_ACTIONS = ("accept", "decline", "cancel")
_REMEDY = 'answer {"action": "accept", "content": {...}}, the content alone, {"action": "decline"}, or None to decline'


def check_input(item: Interrupt, answer: Any) -> dict[str, Any]:
    """Return the answer to an interrupt of kind `mcp_input`, once it fits what the server asked for.

    Raises:
        InterruptError: it does not fit; every problem is listed.
    """
    return read_input(answer, item.value.get("schema") or {}, server=str(item.value.get("server")))


def read_input(answer: Any, schema: Mapping[str, Any], *, server: str) -> dict[str, Any]:
    """Return `{"action": ..., "content": ...}` for an answer: in that form, the content alone, or True, False or None.

    True accepts where the schema asks for nothing but a yes or a page to be visited.

    Raises:
        InterruptError: it does not fit.
    """
    if answer is None or answer is False:
        return {"action": "decline"}
    if answer is True:
        return _yes(schema, server)
    if not isinstance(answer, Mapping):
        raise InterruptError(f"{answer!r} is no answer to MCP server {server!r}; {_REMEDY}")
    if set(answer) <= {"action", "content"} and answer.get("action") in _ACTIONS:
        action, content = answer["action"], answer.get("content")
    elif "action" in answer and "action" not in (schema.get("properties") or {}):
        raise InterruptError(f"{answer!r} is no answer to MCP server {server!r}; {_REMEDY}")
    else:
        action, content = "accept", answer
    if action != "accept" or "url" in schema:
        return {"action": action}
    content = {} if content is None else content
    if not isinstance(content, Mapping):
        raise InterruptError(f"the content {content!r} is no object; {_REMEDY}")
    problems = schema_problems(schema, f"input for {server}")(content)
    if problems:
        listed = "; ".join(problem.line() for problem in problems)
        raise InterruptError(f"the answer does not fit what MCP server {server!r} asks for: {listed}")
    return {"action": "accept", "content": dict(content)}


def gate_field(schema: Mapping[str, Any]) -> str | None:
    """Return the field that a yes or a no fills; empty where consent is all that is asked, `None` for a real form.

    Texts that may be left out, such as a reason, make no real form.
    """
    if "url" in schema:
        return None
    fields = schema.get("properties") or {}
    if not fields:
        return ""
    kinds = {name: field.get("type") if isinstance(field, Mapping) else None for name, field in fields.items()}
    booleans = [name for name, kind in kinds.items() if kind == "boolean"]
    if len(booleans) != 1 or not set(kinds.values()) <= {"boolean", "string"}:
        return None
    return booleans[0] if set(schema.get("required") or ()) <= set(booleans) else None


def _yes(schema: Mapping[str, Any], server: str) -> dict[str, Any]:
    if "url" in schema:
        return {"action": "accept"}
    field = gate_field(schema)
    if field is None:
        raise InterruptError(f"True does not say what MCP server {server!r} asks for; {_REMEDY}")
    return {"action": "accept", "content": {field: True} if field else {}}
