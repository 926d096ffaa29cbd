from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from graphwright.exceptions import ConfigurationError
from graphwright.orchestrator.risk import UNDECLARED_RISK, risk_of
from graphwright.tools import as_tool


class Named:
    name = "named"

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("attributes", "risk"),
    [
        ({}, 1),
        ({"risk_level": 0}, 0),
        ({"risk_hint": 2}, 2),
        ({"risk_level": 0, "risk_hint": 2}, 0),
        ({"risk_level": None, "risk_hint": 2}, 2),
        ({"risk_level": None}, 1),
        ({"risk_level": 5}, 5),
    ],
)
def test_the_level_wins_over_the_hint_and_saying_nothing_counts_as_risky(attributes: dict[str, Any], risk: int) -> None:
    assert risk_of(Named(**attributes)) == risk


@pytest.mark.parametrize("value", [True, False, -1, "high", "0", 1.5, object()])
@pytest.mark.parametrize("name", ["risk_level", "risk_hint"])
def test_a_declaration_that_is_no_number_is_refused_with_the_tools_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} of tool 'named' is .*; give a whole number"):
        risk_of(Named(**{name: value}))


def test_a_property_that_raises_is_refused() -> None:
    class Odd:
        name = "odd"

        @property
        def risk_level(self) -> int:
            raise RuntimeError("not today")

    with pytest.raises(ConfigurationError, match="risk_level of tool 'odd' cannot be read"):
        risk_of(Odd())


def test_an_attribute_that_a_stand_in_makes_up_is_no_declaration() -> None:
    tool = MagicMock()
    assert risk_of(tool) == UNDECLARED_RISK

    tool.risk_level = 0
    assert risk_of(tool) == 0

    other = MagicMock()
    other.risk_hint = 2
    assert risk_of(other) == 2


def test_a_function_declares_its_risk_before_and_after_it_became_a_tool() -> None:
    def wipe(path: str) -> str:
        """Delete."""
        return path

    wipe.risk_level = 2  # type: ignore[attr-defined]

    assert risk_of(wipe) == 2
    assert risk_of(as_tool(wipe)) == 2


def test_a_langchain_tool_declares_its_risk_as_a_field_or_in_its_metadata() -> None:
    class Reader(BaseTool):
        name: str = "reader"
        description: str = "Read."
        risk_level: int = 0

        def _run(self, path: str) -> str:
            return path

    def look(path: str) -> str:
        """Look."""
        return path

    tagged = StructuredTool.from_function(look, metadata={"risk_hint": 0})

    for tool in (Reader(), tagged):
        assert risk_of(tool) == 0
        assert risk_of(as_tool(tool)) == 0
    with pytest.raises(ConfigurationError, match="risk_level of tool 'look'"):
        risk_of(as_tool(StructuredTool.from_function(look, metadata={"risk_level": "low"})))
