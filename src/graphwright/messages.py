"""The messages of a conversation: langchain-core's own classes, and the few things everybody does with them.

The classes are imported when they are first asked for, so importing this module loads nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from graphwright._internal.ids import new_call_id
from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from langchain_core.messages import (
        AIMessage,
        AIMessageChunk,
        AnyMessage,
        BaseMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
    )

__all__ = [
    "AIMessage",
    "AIMessageChunk",
    "AnyMessage",
    "BaseMessage",
    "HumanMessage",
    "SystemMessage",
    "ToolMessage",
    "as_message",
    "as_messages",
    "message_from_dict",
    "message_to_dict",
    "problem_in",
    "refusal_of",
    "repair_pairs",
    "text_of",
    "thinking_of",
    "trim_history",
]

_CLASSES = frozenset(
    {"AIMessage", "AIMessageChunk", "AnyMessage", "BaseMessage", "HumanMessage", "SystemMessage", "ToolMessage"}
)
_THINKING = frozenset({"thinking", "reasoning", "redacted_thinking", "reasoning_content"})
_NO_RESULT = "No result was recorded for this call; it may or may not have run."


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        import langchain_core.messages as classes

        value = globals()[name] = getattr(classes, name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def as_messages(value: Any) -> list[BaseMessage]:
    """Return the conversation that was given as a run's input.

    A string or a message is one message; a list may mix messages, `{"role", "content"}` dicts, `(role, content)`
    pairs and strings; a dict holds any of these under `"messages"`.

    Raises:
        ConfigurationError: the value is none of these, or holds no message.
    """
    kind = type(value)
    if kind is str:
        return [as_message(value)]
    if kind is not list and isinstance(value, Mapping) and "role" not in value:
        if "messages" not in value:
            raise ConfigurationError(
                f"the input dict has the keys {sorted(map(str, value))} and no 'messages'; "
                'give {"messages": [...]} or a plain string'
            )
        value = value["messages"]
    if isinstance(value, list) or (isinstance(value, tuple) and not _is_pair(value)):
        messages = [as_message(entry) for entry in value]
    else:
        messages = [as_message(value)]
    if not messages:
        raise ConfigurationError("the input has no messages; give at least one, such as a plain string")
    return messages


def as_message(value: Any) -> BaseMessage:
    """Return one message made from a message, a `{"role", "content"}` dict, a `(role, content)` pair or a string.

    Raises:
        ConfigurationError: the value is none of these.
    """
    kind = type(value)
    if kind is str:
        return _human(content=value)
    if kind.__module__.startswith("langchain_core.messages.") and not kind.__name__.endswith("Chunk"):
        return cast("BaseMessage", value)
    role: Any = None
    content: Any = None
    if kind is dict and len(value) == 2:
        role, content = value.get("role"), value.get("content")
    elif kind is tuple and len(value) == 2:
        role, content = value
    # What most callers give needs none of LangChain's conversion, which takes longer than the rest of a short run.
    if type(content) is str and (role == "user" or role == "human"):
        return _human(content=content)
    return _converted(value)


def _human(*, content: str) -> HumanMessage:
    from langchain_core.messages import HumanMessage

    globals()["_human"] = HumanMessage  # the next call goes straight to the class
    return HumanMessage(content=content)


def _converted(value: Any) -> BaseMessage:
    from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message
    from langchain_core.messages.utils import convert_to_messages

    if isinstance(value, BaseMessageChunk):
        return message_chunk_to_message(value)
    if isinstance(value, BaseMessage):
        return value
    if isinstance(value, (str, Mapping)) or _is_pair(value):
        try:
            return convert_to_messages([dict(value) if isinstance(value, Mapping) else value])[0]
        except (ValueError, KeyError, TypeError, NotImplementedError) as error:
            reason = str(error).split("\n", 1)[0]
            raise ConfigurationError(f"{_short(value)} is no message: {reason}") from error
    raise ConfigurationError(
        f"{_short(value)} of type {type(value).__name__} is no message; give a string, a LangChain message, "
        'a {"role": ..., "content": ...} dict or a (role, content) pair'
    )


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def text_of(value: Any) -> str:
    """Return the text that a person would read in a message, its content, or a run's result.

    Pieces of text are joined without a separator; thinking, tool use, images and the like are left out. For a
    result (a dict with `"messages"`) it is the text of the last message.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        messages = value.get("messages")
        return text_of(messages[-1]) if messages else ""
    content = getattr(value, "content", value)
    if isinstance(content, str):
        return content
    if not isinstance(content, Iterable):
        return ""
    return "".join(_block_text(block) for block in content)


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping) and block.get("type") in ("text", "output_text", "input_text"):
        text = block.get("text")
        return text if isinstance(text, str) else ""
    return ""


def thinking_of(message: Any) -> str:
    """Return what the model thought before it answered, as far as the provider shows it."""
    content = getattr(message, "content", message)
    parts = []
    if isinstance(content, list):
        parts = [_block_thinking(block) for block in content if isinstance(block, Mapping)]
    extra = getattr(message, "additional_kwargs", {}).get("reasoning_content")
    if isinstance(extra, str) and not any(parts):
        parts.append(extra)
    return "".join(parts)


def _block_thinking(block: Mapping[str, Any]) -> str:
    if block.get("type") not in _THINKING:
        return ""
    for key in ("thinking", "reasoning", "text", "reasoning_content"):
        value = block.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, Mapping) and isinstance(value.get("text"), str):
            return cast(str, value["text"])
    summary = block.get("summary")
    if isinstance(summary, list):
        return "".join(part.get("text", "") for part in summary if isinstance(part, Mapping))
    return ""


def refusal_of(message: Any) -> str | None:
    """Return the refusal in a reply, or `None` when the model did not refuse."""
    refusal = getattr(message, "additional_kwargs", {}).get("refusal")
    if isinstance(refusal, str) and refusal:
        return refusal
    content = getattr(message, "content", None)
    if isinstance(content, list):
        for block in content:
            if isinstance(block, Mapping) and block.get("type") == "refusal":
                return str(block.get("refusal", "")) or "refused"
    return None


def message_to_dict(message: BaseMessage) -> dict[str, Any]:
    """Return a message as plain data that JSON can hold."""
    from langchain_core.messages import message_to_dict as convert

    return convert(message)


def message_from_dict(data: Mapping[str, Any]) -> BaseMessage:
    """Return the message that `message_to_dict` wrote."""
    from langchain_core.messages import messages_from_dict

    return messages_from_dict([dict(data)])[0]


def problem_in(messages: Sequence[BaseMessage], *, start: int = 0) -> str | None:
    """Return why a strict provider would reject this conversation, or `None` when it would not.

    Each tool call has exactly one result, right after its message; there is no other result, no assistant turn
    without text and call, and (when `start` is 0) a user turn.
    """
    owed: list[str] = []
    users = start
    for index in range(start, len(messages)):
        message = messages[index]
        kind = message.type
        if kind == "tool":
            call_id = cast("ToolMessage", message).tool_call_id
            if call_id not in owed:
                return f"message {index} is a result for {call_id!r}, which no call right before it asked for"
            owed.remove(call_id)
            continue
        if owed:
            return f"message {index} comes before the results of {owed}"
        if kind == "human":
            users += 1
        elif kind == "ai":
            problem = _reply_problem(cast("AIMessage", message))
            if problem:
                return f"message {index} {problem}"
            owed = [str(call["id"]) for call in cast("AIMessage", message).tool_calls]
    if owed:
        return f"the conversation ends before the results of {owed}"
    return None if users else "there is no user turn"


def _reply_problem(message: AIMessage) -> str | None:
    if message.invalid_tool_calls:
        return f"holds unparsed tool calls: {[call.get('name') for call in message.invalid_tool_calls]}"
    calls = message.tool_calls
    if not calls:
        has_text = text_of(message).strip()
        return None if has_text or _has_media(message) else "is an assistant turn without text and call"
    ids = [call.get("id") for call in calls]
    if not all(ids) or len(set(ids)) != len(ids):
        return f"has tool call ids that are missing or repeated: {ids}"
    if not all(isinstance(call["args"], dict) for call in calls):
        return "has a tool call whose arguments are no object"
    return None


def _has_media(message: BaseMessage) -> bool:
    if not isinstance(message.content, list):
        return False
    empty = _THINKING | {"text", "output_text", "tool_use", "refusal"}
    return any(isinstance(block, Mapping) and block.get("type") not in empty for block in message.content)


def repair_pairs(messages: Sequence[BaseMessage], *, keep_owed: bool = False) -> list[BaseMessage]:
    """Return the conversation as a strict provider accepts it, changing as little as possible.

    A call without a result gets one that says so, results move right behind their call, results that nobody asked
    for and empty assistant turns are left out, and unparsed calls become calls with empty arguments. With
    `keep_owed`, the calls of the last message may stay unanswered: somebody is about to run them.
    """
    turns: list[tuple[BaseMessage, list[ToolMessage]]] = []
    waiting: dict[str, list[list[ToolMessage]]] = {}
    for message in messages:
        if message.type == "tool":
            askers = waiting.get(cast("ToolMessage", message).tool_call_id)
            if askers:
                # An id may be used again in a later turn: the result is for whoever asked last.
                askers.pop().append(cast("ToolMessage", message))
            continue
        kept: BaseMessage | None = message
        results: list[ToolMessage] = []
        if message.type == "ai":
            kept = _repaired_reply(cast("AIMessage", message))
            for call in _calls_in(kept):
                waiting.setdefault(str(call["id"]), []).append(results)
        if kept is not None:
            turns.append((kept, results))
    repaired: list[BaseMessage] = []
    for place, (message, results) in enumerate(turns, start=1):
        repaired.append(message)
        may_owe = keep_owed and place == len(turns)
        repaired.extend(results if may_owe else _completed(_calls_in(message), results))
    return repaired


def _calls_in(message: BaseMessage | None) -> Sequence[Mapping[str, Any]]:
    return cast("AIMessage", message).tool_calls if message is not None and message.type == "ai" else ()


def _completed(calls: Sequence[Mapping[str, Any]], results: list[ToolMessage]) -> list[ToolMessage]:
    if len(results) == len(calls):
        return results
    found = {result.tool_call_id: result for result in results}
    return [found.get(str(call["id"])) or _missing_result(call) for call in calls]


def _repaired_reply(message: AIMessage) -> AIMessage | None:
    problem = _reply_problem(message)
    if problem is None:
        return message
    if not message.tool_calls and not message.invalid_tool_calls:
        return None
    calls: list[dict[str, Any]] = [dict(call) for call in message.tool_calls]
    calls += [
        {"name": call.get("name") or "unknown", "args": {}, "id": call.get("id")} for call in message.invalid_tool_calls
    ]
    seen: set[str] = set()
    for call in calls:
        if not isinstance(call["args"], dict):
            call["args"] = {}
        if not call.get("id") or call["id"] in seen:
            call["id"] = new_call_id()
        seen.add(call["id"])
        call["type"] = "tool_call"
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})


def _missing_result(call: Mapping[str, Any]) -> ToolMessage:
    from langchain_core.messages import ToolMessage

    return ToolMessage(content=_NO_RESULT, tool_call_id=str(call["id"]), name=call["name"], status="error")


def trim_history(messages: Sequence[BaseMessage], limit: int, *, keep: BaseMessage | None = None) -> list[BaseMessage]:
    """Return about the newest `limit` messages, as a conversation that a strict provider accepts.

    Every system message and the message `keep` (by default the last user turn) stay, also beyond the limit. A
    reply and the results of its calls stay or go together.
    """
    whole = repair_pairs(messages)
    if keep is None:
        keep = next((message for message in reversed(whole) if message.type == "human"), None)
    room = limit - sum(message.type == "system" or message is keep for message in whole)
    kept: set[int] = set()
    for start, end in reversed(_turns(whole)):
        if whole[start].type == "system" or whole[start] is keep:
            continue
        if end - start > room:
            break
        room -= end - start
        kept.update(range(start, end))
    first_user = next(
        (
            index
            for index, message in enumerate(whole)
            if message.type == "human" and (index in kept or message is keep)
        ),
        0,
    )
    return [
        message
        for index, message in enumerate(whole)
        # Some providers refuse a conversation that does not begin with the user.
        if message.type == "system" or message is keep or (index in kept and index >= first_user)
    ]


def _turns(messages: Sequence[BaseMessage]) -> list[tuple[int, int]]:
    """Return the (start, end) places of each message with the tool results that belong to it."""
    turns: list[tuple[int, int]] = []
    for index, message in enumerate(messages):
        if message.type == "tool" and turns:
            turns[-1] = (turns[-1][0], index + 1)
        else:
            turns.append((index, index + 1))
    return turns
