"""An MCP server of the older protocol, without the SDK: it starts in no time, and does wrong what it is told to.

Arguments: `silent` answers nothing, `garbage` prints what is no message, `child` leaves a process behind, `deaf` stops
reading after the first call, `mute` never says what it offers, `pages` lists one entry a page, `loop` repeats a page
for ever, `quit` ends at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

faults = set(sys.argv[1:])
ledger = os.environ["LEDGER"]


def note(text: str) -> None:
    with open(ledger, "a", encoding="utf-8") as file:
        file.write(text + "\n")


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        note("end of input")
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


TOOLS = [
    tool("count"),
    tool("die"),
    tool("wait", annotations={"readOnlyHint": True}),
    tool("odd_result"),
    tool("ask"),
    tool("many_lines"),
    tool("change"),
]


def ask(question: dict[str, Any]) -> dict[str, Any]:
    """Ask the client in the middle of a call, as the older protocol does."""
    send({"id": "q1", "method": "elicitation/create", "params": question})
    while True:
        message = read()
        if message.get("id") == "q1":
            return message
        if message.get("method") == "notifications/cancelled":
            note("cancelled")
            return {}


def call(request: dict[str, Any]) -> Any:
    name = request["params"]["name"]
    note(name)
    if name == "die":
        os._exit(1)
    if name == "wait":
        message = read()
        note(message["method"])
        return None
    if name == "odd_result":
        return {"nothing": "known"}
    if name == "ask":
        properties = {"size": {"type": "integer"}}
        schema = {"type": "object", "properties": properties, "required": ["size"]}
        answer = ask({"message": "Which size?", "requestedSchema": schema})
        return {"content": [{"type": "text", "text": json.dumps(answer.get("result", answer.get("error")))}]}
    if name == "change":
        TOOLS.append(tool("new_one"))
        send({"method": "notifications/tools/list_changed"})
    if name == "many_lines":
        for number in range(3):
            send({"method": "notifications/message", "params": {"level": "error", "logger": "saw", "data": number}})
    return {"content": [{"type": "text", "text": f"{name} {os.getpid()}"}]}


def listed(key: str, entries: list[Any], request: dict[str, Any]) -> dict[str, Any]:
    if not faults & {"pages", "loop"}:
        return {key: entries}
    place = int((request.get("params") or {}).get("cursor", 0))
    if "loop" in faults:
        return {key: entries[:1], "nextCursor": "0"}
    more = {"nextCursor": str(place + 1)} if place + 1 < len(entries) else {}
    return {key: entries[place : place + 1], **more}


def answer(request: dict[str, Any]) -> Any:
    method = request["method"]
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}, "logging": {}}
        info = {"name": "plain", "version": "1"}
        return {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": info,
        }
    if method == "tools/list" and "mute" in faults:
        read()
    if method == "tools/list":
        return listed("tools", TOOLS, request)
    if method == "resources/list":
        return listed("resources", [{"uri": f"shelf://{n}", "name": str(n)} for n in range(3)], request)
    if method == "prompts/list":
        return listed("prompts", [{"name": f"p{n}"} for n in range(3)], request)
    if method == "tools/call":
        return call(request)
    return None


def main() -> None:
    note(f"start {os.getpid()}")
    print("plain server at work", file=sys.stderr, flush=True)
    if "quit" in faults:
        print("no licence found", file=sys.stderr, flush=True)
        sys.exit(3)
    if "garbage" in faults:
        print("Welcome! Loading plugins...", flush=True)
        print('{"half": ', flush=True)
    if "child" in faults:
        child = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        note(f"child {child.pid}")
    while True:
        request = read()
        if "silent" in faults:
            note("heard")
            continue
        if "id" not in request or "method" not in request:
            continue
        result = answer(request)
        if result is not None:
            send({"id": request["id"], "result": result})
        elif request["method"] == "tools/call":
            continue
        else:
            send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
        if "deaf" in faults and request["method"] == "tools/call":
            time.sleep(60)


main()
