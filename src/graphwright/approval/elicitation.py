"""Let an approval handler answer servers that ask for a yes or a no before they run a call."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from graphwright._internal.redact import redact, redact_text
from graphwright.approval._waiting import OutOfTime, within
from graphwright.approval.base import ApprovalDecision, ApprovalRequest
from graphwright.approval.handlers import as_handler
from graphwright.caller import get_current_caller
from graphwright.exceptions import FeatureOffError
from graphwright.interrupts import read_approval
from graphwright.run_scope import current_call

__all__ = ["approval_elicitation_callback", "is_yes_no_form"]

logger = logging.getLogger(__name__)

_MESSAGE_CHARS = 2000


def is_yes_no_form(schema: Mapping[str, Any]) -> bool:
    """Return whether a form asks for nothing but a yes or a no: it has no field, or one boolean.

    Texts that may be left out, such as a reason, do not change that.
    """
    return "url" not in schema and _yes_field(schema) is not None


def _yes_field(schema: Mapping[str, Any]) -> str | None:
    """Return the name of the field that takes the yes; empty where the form has no field."""
    fields = schema.get("properties") or {}
    kinds = {name: field.get("type") if isinstance(field, Mapping) else None for name, field in fields.items()}
    booleans = [name for name, kind in kinds.items() if kind == "boolean"]
    if not fields:
        return ""
    others = {kind for kind in kinds.values() if kind != "boolean"}
    if len(booleans) == 1 and others <= {"string"} and set(schema.get("required") or ()) <= set(booleans):
        return str(booleans[0])
    return None


def approval_elicitation_callback(
    handler: Any,
    *,
    server_name: str | None = None,
    in_flight: Callable[[], tuple[str, dict[str, Any]] | None] | None = None,
    timeout: float | None = None,
    event_notifier: Any = None,
) -> Callable[..., Any]:
    """Return a callback by which MCP servers ask `handler`.

    It takes `(server, message, schema)`, as our MCP client calls it, and returns the answer as a dict, or `None` to
    decline; or `(context, params)`, as the `mcp` SDK calls it, and returns its `ElicitResult`. Only yes/no forms reach
    the handler; anything else is declined, and so is what the handler fails at, answers wrongly, or does not answer
    within `timeout` seconds. `in_flight` returns the tool call that the server is at work on, as `(name, arguments)`;
    without it the call that is at work here is shown.

    Raises:
        ConfigurationError: the handler is none.
    """
    asked = as_handler(handler)
    if event_notifier is not None:
        raise FeatureOffError("event_notifier= needs events, which this release does not have; leave it out")

    async def callback(*args: Any) -> Any:
        if len(args) == 3:
            server, message, schema = args
            return await _answer(server_name or server, str(message), schema)
        _, params = args
        schema = {"url": params.url} if getattr(params, "url", None) else _schema_of(params)
        return _sdk_result(await _answer(server_name or "", str(params.message), schema))

    async def _answer(server: str, message: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        if not is_yes_no_form(schema):
            logger.warning("server %r asks for more than a yes or a no, which no approval handler can give", server)
            return None
        request = _request(server, message, in_flight() if in_flight is not None else _call_here(), timeout)
        try:
            decision = read_approval(await within(_asking(asked, request), timeout))
        except OutOfTime:
            return {"action": "cancel"}
        except Exception:  # foreign code: a handler that fails approves nothing
            logger.exception("the approval handler failed on a question of server %r; it is declined", server)
            return {"action": "decline"}
        # A server runs the arguments that it has, so a yes to other ones is no yes to these.
        if not decision.approved or decision.modified_arguments:
            return {"action": "decline"}
        return {"action": "accept", "content": _content(schema, decision)}

    return callback


async def _asking(handler: Any, request: ApprovalRequest) -> Any:
    return await handler.request_approval(request)


def _request(
    server: str, message: str, call: tuple[str, dict[str, Any]] | None, timeout: float | None
) -> ApprovalRequest:
    caller = get_current_caller()
    name, arguments = call if call is not None else (server, {})
    return ApprovalRequest(
        tool_name=name,
        arguments=redact(arguments),
        raw_arguments=dict(arguments),
        caller_user_id=caller.user_id if caller is not None else None,
        context_summary=redact_text(message[:_MESSAGE_CHARS]),
        timestamp=time.time(),
        timeout=timeout,
        metadata={"server": server, "source": "elicitation"},
    )


def _call_here() -> tuple[str, dict[str, Any]] | None:
    found = current_call.get()
    return (found[0].call.name, found[0].args) if found is not None else None


def _content(schema: Mapping[str, Any], decision: ApprovalDecision) -> dict[str, Any]:
    field = _yes_field(schema)
    content: dict[str, Any] = {field: True} if field else {}
    reason = (schema.get("properties") or {}).get("reason")
    if decision.reason and isinstance(reason, Mapping) and reason.get("type") == "string":
        content["reason"] = decision.reason
    return content


def _schema_of(params: Any) -> Mapping[str, Any]:
    for name in ("requested_schema", "requestedSchema"):
        schema = getattr(params, name, None)
        if schema is not None:
            return schema if isinstance(schema, Mapping) else schema.model_dump(by_alias=True, exclude_none=True)
    return {}


def _sdk_result(answer: dict[str, Any] | None) -> Any:
    import mcp_types as types

    return types.ElicitResult(**(answer or {"action": "decline"}))
