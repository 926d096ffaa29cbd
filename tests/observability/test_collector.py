from __future__ import annotations

import json
from typing import Any

import pytest

from graphwright.observability import ObservabilityCollector


def test_spans_are_recorded_with_their_duration_and_error() -> None:
    collector = ObservabilityCollector()
    with collector.span("load", agent_id="a", source="disk") as more:
        more["rows"] = 3
    with pytest.raises(KeyError), collector.span("load"):
        raise KeyError("x")

    first, second = collector.get_timeline()
    assert (first.event_type, first.agent_id, first.data) == ("load", "a", {"source": "disk", "rows": 3})
    assert first.duration_ms is not None
    assert first.error == ""
    assert second.error == "KeyError: 'x'"


def test_queries_fit_everything_given() -> None:
    collector = ObservabilityCollector()
    for number in range(4):
        collector.record("tool.call", at=float(number), agent_id="ab"[number % 2], error="bad" if number == 3 else "")
    collector.record("other", at=2.0)

    def places(**given: Any) -> list[int]:
        return [entry.seq for entry in collector.query(**given)]

    assert places(event_type="tool.*") == [1, 2, 3, 4]
    assert places(event_type="tool.*", since=1.0, until=2.0) == [2, 3]
    assert places(agent_id="b") == [2, 4]
    assert places(errors_only=True) == [4]
    assert places(limit=2) == [4, 5]
    assert places(limit=0) == []


def test_a_sanitizer_that_fails_keeps_nothing(caplog: Any) -> None:
    def bad(value: Any) -> Any:
        raise RuntimeError("no")

    collector = ObservabilityCollector(sanitizer=bad)
    entry = collector.record("x", secret="s", error="e")
    assert (entry.data, entry.error) == ({"left_out": "it could not be cleaned"}, "(left out)")


def test_purged_entries_are_not_counted_as_dropped_and_clear_forgets_all() -> None:
    collector = ObservabilityCollector(max_entries=3)
    for number in range(5):
        collector.record("x", caller_key="ann" if number == 4 else "bob")
    assert collector.purge_user("ann") == 1
    stats = collector.get_stats()
    assert (stats["total_entries"], stats["dropped_entries"]) == (2, 2)

    collector.clear()
    stats = collector.get_stats()
    assert (stats["total_entries"], stats["dropped_entries"], stats["events_by_type"]) == (0, 0, {})


def test_the_record_is_given_as_json_also_where_data_is_not() -> None:
    collector = ObservabilityCollector("s")
    collector.record("x", thing=object)
    (line,) = collector.to_ndjson().splitlines()
    assert json.loads(line) == json.loads(collector.to_json())["entries"][0]
    assert collector.to_dict()["stats"]["session_name"] == "s"
