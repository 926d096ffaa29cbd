from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from graphwright.cli._event_json import as_json, event_dict
from graphwright.engine import GraphMutation
from graphwright.run_events import GraphMutated, Retrying, RunEvent, TextDelta

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
COMMON = {"type", "seq", "at", "run_id", "path"}


def documented() -> dict[str, str]:
    """Return the row of each event type on the page of the command line."""
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: row for names, row in rows for name in re.findall(r"`(\w+)`", names)}


def snake(kind: type) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


@pytest.mark.parametrize("kind", get_args(RunEvent))
def test_every_event_has_a_row_on_the_page(kind: type) -> None:
    assert snake(kind) in documented()


@pytest.mark.parametrize("event", [TextDelta("n", "hi", "c1"), Retrying("n", 1, 0.5, "lost")])
def test_an_event_has_the_fields_that_the_page_names(event: Any) -> None:
    own = {part.name for part in fields(event)} - COMMON - {"chunk", "agent_id"}

    written = event_dict(event)

    assert set(written) == COMMON | own
    assert set(re.findall(r"`(\w+)`", documented()[written["type"]])) == own


def test_a_change_of_the_graph_is_written_with_all_its_parts() -> None:
    mutation = GraphMutation(action="add_edge", from_node="a", to_node="b")

    written = event_dict(GraphMutated("a", mutation, True, run_id="r", path="p"))

    assert written["mutation"]["to_node"] == "b"
    assert (written["applied"], written["path"]) == (True, "p")


class Stubborn:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_any_value_becomes_json_that_a_strict_parser_reads() -> None:
    deep: dict[str, Any] = {}
    deep["self"] = deep
    values = {"nan": float("nan"), 3: {1}, "bytes": b"x", "odd": Stubborn(), "half": "\ud800", "deep": deep}

    line = as_json(values)
    read = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))

    assert line.isascii()
    assert (read["nan"], read["3"], read["bytes"], read["odd"]) == ("nan", [1], "b'x'", "<Stubborn>")
