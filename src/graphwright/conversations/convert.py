"""The stored form of a model's messages, and the way back: tool calls and their results as pairs that hold.

What a person reads is the stored message's text. What else a model needs to see again (calls, ids, images, thinking)
is kept in its metadata, under one key, and only where there is something.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphwright.conversations._rows import pack
from graphwright.conversations.base import Message, MessageRole
from graphwright.exceptions import ConfigurationError, UnstorableError
from graphwright.messages import message_from_dict, message_to_dict, repair_pairs, text_of

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["EXTRAS", "from_stored", "to_stored"]

logger = logging.getLogger(__name__)

EXTRAS = "_message"
"""Key of a stored message's metadata that holds what its text does not say. It is the framework's own."""

_ROLES: dict[str, MessageRole] = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_TYPES = {role: kind for kind, role in _ROLES.items()}
_REQUIRED = frozenset({"tool_calls", "invalid_tool_calls", "tool_call_id", "content", "name", "id", "status"})


def to_stored(messages: Iterable[BaseMessage], *, metadata: Mapping[str, Any] | None = None) -> list[Message]:
    """Return the messages in the form in which they are stored; `metadata` is put on those of the user.

    What a provider or a tool attached for itself (`response_metadata`, an `artifact`) and cannot be stored is left
    out, as no model reads it.

    Raises:
        ConfigurationError: a message has no place in a stored conversation, or `metadata` uses the key `_message`.
        UnstorableError: what a model would read cannot be stored.
    """
    if metadata is not None and EXTRAS in metadata:
        raise ConfigurationError(f"metadata has the key {EXTRAS!r}, which is the framework's own; use another name")
    return [_stored(message, metadata or {}) for message in messages]


def from_stored(messages: Sequence[Message]) -> list[BaseMessage]:
    """Return stored messages as a model reads them: a conversation that a strict provider accepts.

    Every call has exactly one result, right after it; results without a call and empty replies are left out.
    """
    return repair_pairs([_restored(message) for message in messages])


def _stored(message: BaseMessage, metadata: Mapping[str, Any]) -> Message:
    if message.type.endswith("Chunk"):
        from langchain_core.messages import BaseMessageChunk, message_chunk_to_message

        assert isinstance(message, BaseMessageChunk)
        message = message_chunk_to_message(message)
    role = _ROLES.get(message.type)
    if role is None:
        raise ConfigurationError(
            f"a message of type {message.type!r} cannot be stored; a conversation holds human, ai, system and tool ones"
        )
    text = text_of(message)
    kept: dict[str, Any] = dict(metadata) if role == "user" else {}
    extras = _extras(message, text)
    if extras:
        kept[EXTRAS] = extras
    return Message(role=role, content=text, metadata=kept)


def _extras(message: BaseMessage, text: str) -> dict[str, Any]:
    data: dict[str, Any] = message_to_dict(message)["data"]
    if data.get("content") == text:
        del data["content"]
    data.pop("type", None)
    if data.get("status") == "success":
        del data["status"]
    extras = {}
    for name, value in data.items():
        if value is None or value == {} or value == [] or value is False:
            continue
        try:
            pack(value, f"{name} of a {message.type} message")
        except UnstorableError:
            if name in _REQUIRED:
                raise
            logger.debug("%s of a %s message cannot be stored and is left out", name, message.type)
            continue
        extras[name] = value
    return extras


def _restored(message: Message) -> BaseMessage:
    extras = message.metadata.get(EXTRAS)
    data: dict[str, Any] = dict(extras) if isinstance(extras, Mapping) else {}
    # The text may have been edited in the store since; then it is what counts.
    if "content" not in data or text_of(data["content"]) != message.content:
        data["content"] = message.content
    if message.role == "tool":
        data.setdefault("tool_call_id", "")
    return message_from_dict({"type": _TYPES[message.role], "data": data})
