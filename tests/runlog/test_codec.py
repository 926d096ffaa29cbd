"""The text that a log keeps its values in: faithful, data only, and clear about what it refuses."""

from __future__ import annotations

import enum
import json
import math
import sqlite3
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)
from pydantic import BaseModel, PrivateAttr

from graphwright.exceptions import ConfigurationError, StoreUnavailable, UnstorableError
from graphwright.interrupts import ApprovalDecision, Interrupt
from graphwright.runlog.codec import dumps, loads, register
from graphwright.types import ToolCall, ToolResult
from graphwright.usage import Usage


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


class Level(enum.IntEnum):
    LOW = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass
class Place:
    name: str
    tags: list[str] = field(default_factory=list)
    weight: float = 0.0
    inside: Place | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    value: int

    def __post_init__(self) -> None:
        raise AssertionError("reading ran code of the class")


class Shape(BaseModel):
    model_config = {"extra": "allow"}
    sides: int
    name: str = ""
    _seen: int = PrivateAttr(default=0)


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and other.cents == self.cents

    __hash__ = None  # type: ignore[assignment]


for _cls in (Color, Level, Right, Place, Checked, Shape):
    register(_cls, f"test.{_cls.__name__}")
register(Money, "test.Money", to_data=lambda money: money.cents, from_data=Money)


def same(left: Any, right: Any) -> bool:
    """Compare values with the types of all that is in them; NaN is itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            same(a, b) and same(left[a], right[b]) for a, b in zip(left, right, strict=True)
        )
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (left == right and str(left) == str(right))
    return bool(left == right)


any_text = st.text(st.characters(exclude_categories=[]))
atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    any_text,
    st.binary(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([UTC, ZoneInfo("Europe/Berlin"), timezone(timedelta(hours=-3))])),
    st.dates(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.sampled_from([*Color, *Level, Right.READ | Right.WRITE]),
)
hashable = st.recursive(
    atoms.filter(lambda value: value == value),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
values = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.sets(hashable, max_size=3),
        st.dictionaries(any_text, inner, max_size=4),
        st.dictionaries(hashable, inner, max_size=3),
        st.builds(Place, any_text, st.lists(any_text, max_size=2), st.floats(allow_nan=False)),
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(values)
def test_what_is_written_is_read_as_it_was(value: Any) -> None:
    text = dumps(value)

    assert same(loads(text), value)
    text.encode()
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@settings(max_examples=100, deadline=None)
@given(content=any_text, extra=st.dictionaries(any_text, values, max_size=3), args=st.dictionaries(any_text, values))
def test_a_message_with_anything_in_it_is_read_as_it_was(content: str, extra: dict[str, Any], args: Any) -> None:
    calls = [{"name": "f", "args": args, "id": content, "type": "tool_call"}]
    message = AIMessage.model_construct(content=content, additional_kwargs=extra, tool_calls=calls)

    read = loads(dumps(message))

    assert type(read) is AIMessage
    assert read.__dict__.keys() == message.__dict__.keys()
    assert all(same(read.__dict__[name], value) for name, value in message.__dict__.items())


USAGE: Any = {
    "input_tokens": 10,
    "output_tokens": 5,
    "total_tokens": 15,
    "input_token_details": {"cache_read": 4},
    "output_token_details": {"reasoning": 2},
}
BLOCKS: list[Any] = [
    "bare text",
    {"type": "text", "text": "hi", "annotations": [{"type": "citation", "url": "u"}], "index": 0},
    {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "s"}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    {"type": "image", "base64": "AAAA", "mime_type": "image/png"},
    {"type": "tool_use", "id": "call_1", "name": "f", "input": {}},
    {"$": "looks like a mark", "type": "non_standard"},
]
MESSAGES: list[BaseMessage] = [
    HumanMessage("hello"),
    HumanMessage(BLOCKS, name="ann", id="m1", priority=3, **{"$": "extra"}),
    SystemMessage("be brief", additional_kwargs={"cache_control": {"type": "ephemeral"}}),
    AIMessage("", tool_calls=[{"name": "f", "args": {"x": [1, 2.5, None]}, "id": "call_1"}], usage_metadata=USAGE),
    AIMessage(BLOCKS, response_metadata={"at": datetime(2026, 1, 2, tzinfo=UTC), "logprobs": [-0.0, -1.5]}, id="r"),
    AIMessage("", invalid_tool_calls=[{"name": "f", "args": "{bad", "id": "c", "error": "no JSON"}]),
    ToolMessage("done", tool_call_id="call_1", name="f", artifact={"rows": ((1, b"\x00"),)}, status="error"),
    ToolMessage(BLOCKS[:2], tool_call_id="", id=""),
    ChatMessage("hi", role="critic"),
    FunctionMessage("3", name="add"),
    RemoveMessage("m1"),
    AIMessageChunk("par", tool_call_chunks=[{"name": "f", "args": '{"x"', "id": "c", "index": 0}], id="run-1"),
    AIMessageChunk("end", chunk_position="last", usage_metadata=USAGE),
    HumanMessageChunk("a"),
    SystemMessageChunk("b"),
    ToolMessageChunk("c", tool_call_id="x"),
    ChatMessageChunk("d", role="r"),
    FunctionMessageChunk("e", name="f"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_message_is_read_as_it_was(message: BaseMessage) -> None:
    read = loads(dumps({"messages": [message]}))["messages"][0]

    assert type(read) is type(message)
    assert read == message
    assert read.__dict__ == message.__dict__
    assert read.model_dump() == message.model_dump()


def test_every_message_class_of_langchain_is_covered() -> None:
    import langchain_core.messages as found

    names = {name for name in found.__all__ if name.endswith(("Message", "MessageChunk"))}

    assert (
        names - {type(message).__name__ for message in MESSAGES}
        == {"AnyMessage", "BaseMessage", "BaseMessageChunk"} & names
    )


def test_the_text_of_a_message_is_kept_as_a_plain_text() -> None:
    assert type(loads(dumps({"answer": HumanMessage("hello").text}))["answer"]) is str
    assert loads(dumps({"answer": HumanMessage("hello").text})) == {"answer": "hello"}


def test_a_message_is_written_without_what_it_does_not_have() -> None:
    assert dumps(HumanMessage("hello")) == '{"$":"human","content":"hello"}'


@pytest.mark.parametrize(
    "value",
    [
        Place("a", ["x"], -0.0, Place("b")),
        Usage(1, None, 3),
        ToolCall("call_1", "f", {"x": 1}, "bad JSON", "{"),
        ToolResult(
            ToolCall("c", "f", {}), ToolMessage("ok", tool_call_id="c"), {"x": (1,)}, False, 1.5, verdict="denied"
        ),
        Interrupt("int_1", "approval", {"tool": "f"}, "a#1", 12.5, None),
        ApprovalDecision(True, {"x": 1}, "ann", always=True),
        Money(5),
        [Color.RED, Level.LOW, Right.READ],
        {1: "int", "1": "text", False: 3, None: 4, (1, "a"): 5, Color.BLUE: 6},
        {"$": "human", "content": "data that looks like a mark"},
        Path("a") / "b",
        PurePosixPath("/x"),
        PureWindowsPath("c:\\x"),
        [bytearray(b"ab"), time(1, 2, 3, fold=1), date(2026, 1, 1), datetime(2026, 10, 25, 2, 30, fold=1)],
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        time(1, 2, tzinfo=UTC),
        [Decimal("1.50"), Decimal("-Infinity"), UUID(int=7), timedelta(days=-1, microseconds=1)],
        [float("inf"), float("-inf"), -0.0, 1e400, 5e-324, 10**5000, -(2**70)],
        "\ud83d\ude00",
        {"\ud83d": "\udc80\0", "🙂": "\U0010ffff"},
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_are_read_as_they_were(value: Any) -> None:
    limit = sys.get_int_max_str_digits()
    read = loads(dumps(value))

    assert same(read, value)
    assert sys.get_int_max_str_digits() == limit


def test_a_model_is_read_with_its_extra_and_private_fields() -> None:
    shape = Shape(sides=3, **{"$": "odd", "color": Color.RED})
    shape._seen = 4

    read = loads(dumps(shape))

    assert (read, read._seen, read.model_extra) == (shape, 4, {"$": "odd", "color": Color.RED})


def test_equal_sets_are_written_equally() -> None:
    names = [f"name{number}" for number in range(50)]

    assert dumps(set(names)) == dumps(set(reversed(names)))


def test_reading_runs_no_code_of_a_registered_class() -> None:
    checked = object.__new__(Checked)
    object.__setattr__(checked, "value", 5)

    assert loads(dumps(checked)).value == 5


def test_a_text_survives_sqlite() -> None:
    value = {"a\0b": ["\ud800", "é", "\0", "🙂"]}
    connection = sqlite3.connect(":memory:")

    found = connection.execute("SELECT ?", (dumps(value),)).fetchone()[0]
    connection.close()

    assert loads(found) == value


def test_a_later_default_is_used_for_a_field_that_an_older_log_does_not_have() -> None:
    assert loads('{"$":"@test.Place","name":"a"}') == Place("a", [], 0.0, None)
    assert loads('{"$":"@test.Place","name":"a"}').tags is not loads('{"$":"@test.Place","name":"a"}').tags


class Client:
    pass


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"context": {"client": Client()}}, 'data["context"]["client"] is a '),
        (
            {"m": [1, HumanMessage("x", additional_kwargs={"raw": Client()})]},
            'data["m"][1].additional_kwargs["raw"] is a ',
        ),
        ({"p": Place("a", inside=Place("b", tags=[Client()]))}, 'data["p"].inside.tags[0] is a '),  # type: ignore[list-item]
        ({3: (1, {Client()})}, "data[3][1][0] is a "),
        ({Client: 1}, "data key <class "),
        ({"m": HumanMessage("x", raw=Client())}, 'data["m"] extra field ["raw"] is a '),
        ({"o": OrderedDict(a=1)}, 'data["o"] is a collections.OrderedDict, '),
        ({"f": len}, 'data["f"] is a builtins.builtin_function_or_method, '),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_place(value: Any, place: str) -> None:
    with pytest.raises(UnstorableError) as caught:
        dumps(value)

    assert str(caught.value).startswith(place)
    assert "codec.register" in str(caught.value)


def test_a_cycle_is_refused_by_its_place() -> None:
    ring: dict[str, Any] = {"name": "ring"}
    ring["list"] = [0, ring]
    place = Place("loop")
    place.inside = place

    with pytest.raises(UnstorableError, match=r'^data\["a"\]\["list"\]\[1\] contains itself'):
        dumps({"a": ring})
    with pytest.raises(UnstorableError, match=r"^data\.inside contains itself"):
        dumps(place)


def test_what_is_used_twice_is_no_cycle() -> None:
    shared = [1]

    assert loads(dumps([shared, shared, {"x": shared}])) == [[1], [1], {"x": [1]}]


def test_what_is_nested_too_deeply_is_refused_and_the_deepest_that_is_not_can_be_read() -> None:
    deep: Any = 1
    for _ in range(150):
        deep = {(1,): deep}

    assert loads(dumps(deep)) == deep
    with pytest.raises(UnstorableError, match="nested deeper than 150 levels"):
        dumps({"a": {"b": deep}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"$":"@os.system","v":"true"}', "class named 'os.system', which is not known here"),
        ('{"x":[{"$":"zip"}]}', "marked 'zip', which this version does not know"),
        ('{"$":"@test.Place"}', "without its field 'name'"),
        ('{"$":"@test.Place","name":"a","new":1}', "unknown field 'new'"),
        ("#" + "2 anything", "a newer version wrote it"),
    ],
)
def test_what_is_not_known_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"$":"tuple"}',
        '{"$":["list"]}',
        '{"$":"datetime","v":"no"}',
        '{"$":"datetime","v":"2026-01-01T00:00:00","zone":"../../os"}',
        '{"$":"set","v":[[1]]}',
        '{"$":"decimal","v":"x"}',
        '{"$":"@test.Color","v":"GREEN"}',
        "[" * 100_000,
    ],
)
def test_a_damaged_text_is_said_to_be_damaged(text: str) -> None:
    with pytest.raises(StoreUnavailable, match="damaged"):
        loads(text)


def test_reading_imports_nothing_that_a_text_names() -> None:
    before = set(sys.modules)

    with pytest.raises(ConfigurationError):
        loads('{"$":"@antigravity:main"}')

    assert "antigravity" not in sys.modules
    assert {name for name in sys.modules if "antigravity" in name} - before == set()


def test_a_name_stands_for_one_class() -> None:
    assert register(Place, "test.Place") is Place

    with pytest.raises(ConfigurationError, match=r"the name 'test\.Place' stands for"):
        register(Client, "test.Place")
    with pytest.raises(ConfigurationError, match="known to run logs already"):
        register(Place, "test.Other")
    with pytest.raises(ConfigurationError, match="known to run logs already"):
        register(AIMessage, "test.AI")
    with pytest.raises(ConfigurationError, match="is no dataclass, enum or pydantic model"):
        register(Client, "test.Client")
    with pytest.raises(ConfigurationError, match="with both"):
        register(Client, "test.Client", to_data=vars)
