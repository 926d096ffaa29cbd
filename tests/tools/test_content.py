from __future__ import annotations

import base64
import dataclasses
import enum
import json
import math
import uuid
from collections import OrderedDict, namedtuple
from datetime import date
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import ToolOutputMixin
from pydantic import BaseModel

from graphwright.tools import ToolRun, answer_calls, as_tools
from graphwright.types import ToolCall, ToolResult

PNG = b"\x89PNG\r\n\x1a\n rest"


class Point(BaseModel):
    x: int
    day: date = date(2024, 2, 29)


@dataclasses.dataclass
class Box:
    point: Point
    names: set[str]


class Colour(enum.Enum):
    RED = "red"


Pair = namedtuple("Pair", "left right")


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Picture:
    size = (2, 2)

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def convert(self, mode: str) -> Picture:
        return Picture(mode)

    def save(self, file: Any, format: str) -> None:
        file.write(PNG + f"{format} {self.mode}".encode())


@dataclasses.dataclass
class Command(ToolOutputMixin):
    goto: str

    def __str__(self) -> str:
        return f"go to {self.goto}"


async def result_of(value: Any, **run: Any) -> ToolResult:
    async def give() -> Any:
        return value

    return (await answer_calls([ToolCall("c1", "give", {})], as_tools([give]), ToolRun(**run)))[0]


def circle() -> list[Any]:
    around: list[Any] = []
    around.append(around)
    return around


def deep() -> list[Any]:
    inner: list[Any] = []
    for _ in range(100_000):
        inner = [inner]
    return inner


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("plain text", "plain text"),
        ("", ""),
        ("schön", "schön"),
        ("lone \ud800 surrogate", "lone ? surrogate"),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (2.5, "2.5"),
        (math.nan, "NaN"),
        ({"n": 1, "of": 2, "ok": True, "note": "grün"}, '{"n": 1, "of": 2, "ok": true, "note": "grün"}'),
        (["a", 1, None], '["a", 1, null]'),
        ([], "[]"),
        ({}, "{}"),
        ((1, "two"), '[1, "two"]'),
        (Pair(1, 2), "[1, 2]"),
        (OrderedDict(a=1), '{"a": 1}'),
        ({1: "a", None: "b", (2, 3): "c", Colour.RED: "d"}, '{"1": "a", "null": "b", "(2, 3)": "c", "red": "d"}'),
        (Point(x=1), '{"x": 1, "day": "2024-02-29"}'),
        ([Point(x=1)], '[{"x": 1, "day": "2024-02-29"}]'),
        (Box(Point(x=2), {"a"}), '{"point": {"x": 2, "day": "2024-02-29"}, "names": ["a"]}'),
        ({"at": date(2024, 2, 29), "d": Decimal("1.10"), "c": Colour.RED, "b": b"raw"},
         '{"at": "2024-02-29", "d": "1.10", "c": "red", "b": "raw"}'),
        (frozenset({1}), "[1]"),
        (Colour.RED, "red"),
        (date(2024, 2, 29), "2024-02-29"),
        (Decimal("1.10"), "1.10"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (PurePosixPath("/a/b"), "/a/b"),
        (ValueError("as a value"), "as a value"),
        (Command("next"), "go to next"),
        (AIMessage(content="said"), "said"),
        (Broken(), "[a Broken that cannot be shown]"),
        ({"broken": Broken()}, '{"broken": "[a Broken that cannot be shown]"}'),
        (b"some text\n", "some text\n"),
        (b"\x00\xff" * 600, "[1,200 bytes of binary data]"),
        (bytearray(b"\x01\x02"), "[2 bytes of binary data]"),
        (b"", ""),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
async def test_a_result_of_any_type_is_text_that_a_model_can_read(value: Any, content: str) -> None:
    result = await result_of(value)

    assert (result.message.content, result.message.status, result.success) == (content, "success", True)
    assert result.record()["result"] == content


@pytest.mark.parametrize("value", [circle(), deep()], ids=["holds itself", "very deep"])
async def test_a_value_without_an_end_is_still_answered(value: Any) -> None:
    result = await result_of(value)

    assert result.success
    assert isinstance(result.message.content, str)


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0 rest", "image/jpeg"),
        (b"GIF89a rest", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBP rest", "image/webp"),
        (bytearray(PNG), "image/png"),
        (memoryview(PNG), "image/png"),
    ],
)
async def test_image_bytes_become_an_image_block(data: Any, mime_type: str) -> None:
    result = await result_of(data)

    assert result.message.content == [
        {"type": "image", "base64": base64.b64encode(bytes(data)).decode(), "mime_type": mime_type}
    ]


@pytest.mark.parametrize(("mode", "sent_as"), [("RGBA", "RGBA"), ("CMYK", "RGB")])
async def test_a_picture_object_becomes_an_image_block(mode: str, sent_as: str) -> None:
    result = await result_of(Picture(mode))

    data = base64.b64encode(PNG + f"PNG {sent_as}".encode()).decode()
    assert result.message.content == [{"type": "image", "base64": data, "mime_type": "image/png"}]


@pytest.mark.parametrize(
    "blocks",
    [
        [{"type": "text", "text": "hi"}],
        ["words", {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}],
        [{"type": "image", "base64": "AA==", "mime_type": "image/png"}],
        [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
        [{"type": "file", "file_id": "f1"}],
    ],
)
async def test_content_blocks_stay_as_they_are(blocks: list[Any]) -> None:
    assert (await result_of(blocks)).message.content == blocks


@pytest.mark.parametrize(
    "data",
    [
        [{"type": "bug", "text": "it broke"}],
        [{"type": "file", "name": "a.txt", "url": "file:///a.txt", "size": 3}],
        [{"type": "text", "text": 5}],
        [{"type": "text", "text": "hi"}, {"n": 1}],
        [{"type": ["text"], "text": "hi"}],
        {"type": "image", "width": 3},
    ],
)
async def test_data_that_only_looks_like_blocks_is_json(data: Any) -> None:
    assert (await result_of(data)).message.content == json.dumps(data)


async def test_a_tool_message_keeps_content_artifact_and_status_and_gets_the_calls_id() -> None:
    made = ToolMessage(content=["a", "b"], tool_call_id="mine", artifact={"raw": 1}, status="error")
    result = await result_of(made)

    message = result.message
    assert (message.content, message.artifact, message.status) == (["a", "b"], {"raw": 1}, "error")
    assert (message.tool_call_id, message.name, result.success) == ("c1", "give", False)
    assert made.tool_call_id == "mine"


async def test_a_long_result_is_cut_and_says_so() -> None:
    text = await result_of("x" * 50, max_result_chars=10)
    blocks = await result_of(
        [{"type": "text", "text": "y" * 8}, {"type": "text", "text": "z" * 8}, {"type": "file", "file_id": "f"}],
        max_result_chars=10,
    )

    assert text.message.content == "x" * 10 + "... [40 more characters]"
    assert blocks.message.content == [
        {"type": "text", "text": "y" * 8},
        {"type": "text", "text": "zz... [6 more characters]"},
        {"type": "file", "file_id": "f"},
    ]
