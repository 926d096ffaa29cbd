"""Read what comes with a goal: its mode, its images, the history that was handed in."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphwright.exceptions import ConfigurationError
from graphwright.messages import AIMessage, BaseMessage, HumanMessage, as_message, text_of

__all__ = ["MODES", "checked_mode", "checked_thread", "given_texts", "goal_messages"]

MODES = ("auto", "ask", "plan")

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "bot": "assistant"}


def checked_mode(mode: Any) -> str:
    """Return the mode.

    Raises:
        ConfigurationError: there is no such mode. A word that merely looks like one would run without asking.
    """
    if mode not in MODES or not isinstance(mode, str):
        raise ConfigurationError(f"mode is {mode!r}; use one of {', '.join(map(repr, MODES))}")
    return mode


def checked_thread(thread_id: Any) -> None:
    """Refuse what cannot name a thread.

    Raises:
        ConfigurationError: it is no text.
    """
    if thread_id is not None and not isinstance(thread_id, str):
        raise ConfigurationError(f"thread_id is {thread_id!r}; give a text, such as str(...) of it")


def goal_messages(goal: Any, images: Sequence[Any] | None, history: Sequence[Any] | None) -> list[BaseMessage]:
    """Return the conversation that a goal begins or goes on with.

    Raises:
        ConfigurationError: the goal is no text, an image cannot be read, or a history entry is no message.
    """
    if not isinstance(goal, str):
        raise ConfigurationError(f"goal is {goal!r}; give a text")
    if isinstance(history, (str, bytes, Mapping)):
        raise ConfigurationError(f"history is {history!r}; give a list of messages")
    messages = [_history_message(entry) for entry in history or ()]
    if not images:
        return [*messages, HumanMessage(content=goal)]
    if isinstance(images, (str, bytes, Mapping)):
        images = [images]
    blocks: list[str | dict[Any, Any]] = [{"type": "text", "text": goal}]
    blocks += [_image_block(image) for image in images]
    return [*messages, HumanMessage(content=blocks)]


def given_texts(messages: Sequence[Any], context: Mapping[str, Any]) -> Iterator[str]:
    """Yield every text that the user sent: goal, captions of images, history, context."""
    for message in messages:
        text = text_of(message)
        if text:
            yield text
        if isinstance(message.content, list):
            for block in message.content:
                if isinstance(block, Mapping):
                    for key in ("caption", "alt", "title", "description"):
                        value = block.get(key)
                        if isinstance(value, str) and value:
                            yield value
    given = context.get("given_context")
    if given:
        yield str(given)


def _history_message(entry: Any) -> BaseMessage:
    if isinstance(entry, BaseMessage):
        return entry
    if isinstance(entry, Mapping):
        role, content = entry.get("role"), entry.get("content")
        if content is None:
            raise ConfigurationError(f"history has {dict(entry)!r} without 'content'; give a role and a content")
        if role == "system":
            return as_message({"role": "system", "content": content})
        # A role that nobody knows is somebody who talks to the bot.
        return as_message({"role": _ROLES.get(str(role), "user"), "content": content})
    is_bot, content = getattr(entry, "is_bot", None), getattr(entry, "content", None)
    if isinstance(content, str) and isinstance(is_bot, bool):
        return AIMessage(content=content) if is_bot else HumanMessage(content=content)
    raise ConfigurationError(
        f"history has {entry!r}, which is no message; give dicts with role and content, or LangChain messages"
    )


def _image_block(image: Any) -> dict[str, Any]:
    if isinstance(image, Mapping):
        if "type" in image:
            return dict(image)
        data = image.get("base64") or image.get("data")
        if isinstance(data, str):
            mime = str(image.get("mime_type") or image.get("media_type") or "image/png")
            block: dict[str, Any] = {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}
            return block | {key: image[key] for key in ("caption", "alt", "title", "description") if key in image}
        if isinstance(image.get("url"), str):
            return {"type": "image_url", "image_url": {"url": image["url"]}}
    if isinstance(image, (bytes, bytearray)):
        return _data_block(bytes(image), _kind_of(bytes(image)))
    if isinstance(image, Path):
        return _file_block(image)
    if isinstance(image, str) and image.startswith(("http://", "https://", "data:")):
        return {"type": "image_url", "image_url": {"url": image}}
    if isinstance(image, str) and image:
        try:
            data = base64.b64decode(image, validate=True)
        except ValueError:
            data = b""
        if _known_kind(data):
            return _data_block(data, _kind_of(data))
        return _file_block(Path(image))
    raise ConfigurationError(f"image {_short(image)} cannot be read; give a URL, a data URL, bytes, or a file")


def _file_block(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"image {_short(str(path))} is no file that can be read: {error.strerror or error}; "
            "give a URL, a data URL, bytes, or a file"
        ) from error
    return _data_block(data, mimetypes.guess_type(path.name)[0] or _kind_of(data))


def _data_block(data: bytes, mime: str) -> dict[str, Any]:
    encoded = base64.b64encode(data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{encoded}"}}


_MAGIC = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}


def _known_kind(data: bytes) -> str | None:
    return next((mime for magic, mime in _MAGIC.items() if data.startswith(magic)), None)


def _kind_of(data: bytes) -> str:
    return _known_kind(data) or "image/png"


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
