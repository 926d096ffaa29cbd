from __future__ import annotations

import dataclasses
import enum
import functools
import gc
import weakref
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from graphwright.exceptions import ConfigurationError
from graphwright.tools import ToolArgumentError, as_tool, tool
from graphwright.types import ToolCall

if TYPE_CHECKING:
    from decimal import Decimal


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


@dataclasses.dataclass
class Box:
    width: float


class Options(TypedDict):
    deep: bool


def parameters(function: Any) -> dict[str, Any]:
    return as_tool(function).spec.parameters


def problems(function: Any, **args: Any) -> list[str]:
    with pytest.raises(ToolArgumentError) as caught:
        as_tool(function).validate(args)
    return caught.value.problems


def test_a_function_becomes_a_tool_with_its_name_docstring_and_hints() -> None:
    async def search(query: str, limit: int = 5, *, exact: bool = False) -> str:
        """Search the documents.

        Finds whole words only.

        Args:
            query: what to look for,
                in plain words.
            limit: how many hits.

        Returns:
            The hits.
        """
        return f"{query} {limit} {exact}"

    spec = as_tool(search).spec

    assert spec.name == "search"
    assert spec.description == "Search the documents.\n\nFinds whole words only."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for, in plain words."},
            "limit": {"type": "integer", "description": "how many hits.", "default": 5},
            "exact": {"type": "boolean", "default": False},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_numpy_and_rest_docstrings_are_understood_too() -> None:
    def numpy_style(a: int) -> None:
        """Do it.

        Parameters
        ----------
        a : int
            the number.
        """

    def rest_style(a: int) -> None:
        """Do it.

        :param a: the number.
        """

    for function in (numpy_style, rest_style):
        assert as_tool(function).spec.description == "Do it."
        assert parameters(function)["properties"]["a"]["description"] == "the number."


def test_words_in_annotated_and_in_field_win_over_the_docstring() -> None:
    def f(
        a: Annotated[int, "first"],
        b: Annotated[int, Field(description="second", ge=1)],
        c: int = Field(3, description="third"),
    ) -> None:
        """Do it.

        Args:
            a: no.
            b: no.
            c: no.
        """

    properties = parameters(f)["properties"]

    assert [properties[name]["description"] for name in "abc"] == ["first", "second", "third"]
    assert properties["b"]["minimum"] == 1
    assert properties["c"]["default"] == 3
    assert parameters(f)["required"] == ["a", "b"]


@tool
def at_import(mode: Literal["a", "b"] = "a", n: Annotated[int, Field(ge=1)] = 1) -> str:
    return f"{mode}{n}"


def test_postponed_annotations_are_resolved_at_import_time() -> None:
    properties = at_import.spec.parameters["properties"]

    assert properties["mode"]["enum"] == ["a", "b"]
    assert properties["n"]["minimum"] == 1
    assert problems(at_import, mode="c") == ["mode: should be 'a' or 'b', not 'c'"]


def test_postponed_annotations_find_local_types_of_the_function_around() -> None:
    Mode = Literal["a", "b"]

    class Local(BaseModel):
        mode: Literal["x"]

    def inside() -> Any:
        Count = Annotated[int, Field(ge=1)]

        @tool
        def f(mode: Mode = "a", n: Count = 1, local: Optional[Local] = None) -> str:  # noqa: UP045
            return f"{mode}{n}{local}"

        return f

    made = inside()

    assert made.spec.parameters["properties"]["mode"]["enum"] == ["a", "b"]
    assert made.spec.parameters["properties"]["n"]["minimum"] == 1
    assert made.validate({"local": {"mode": "x"}}) == {"local": Local(mode="x")}


def test_a_type_that_cannot_be_found_is_named_with_its_parameter() -> None:
    def pay(amount: Decimal) -> None: ...

    with pytest.raises(ConfigurationError) as caught:
        as_tool(pay)

    assert "parameter 'amount' of tool 'pay' has the type 'Decimal'" in str(caught.value)
    assert "not under TYPE_CHECKING" in str(caught.value)


@pytest.mark.parametrize("hint", [object, Callable[[int], int], type("Engine", (), {})])
def test_a_type_that_no_model_can_fill_is_refused_when_the_tool_is_made(hint: Any) -> None:
    def f(good: int, engine: Any) -> None: ...

    f.__annotations__["engine"] = hint
    if hint is object:
        assert as_tool(f).validate({"good": 1, "engine": 2}) == {"good": 1, "engine": 2}
        return
    with pytest.raises(ConfigurationError, match="parameter 'engine' of tool 'f' has a type that a model cannot fill"):
        as_tool(f)


def test_an_annotation_that_is_no_type_is_refused() -> None:
    def f(a: int | 3) -> None: ...

    with pytest.raises(ConfigurationError, match=r"parameter 'a' of tool 'f' has the annotation 'int \| 3'"):
        as_tool(f)


def test_arguments_arrive_as_the_types_of_the_hints() -> None:
    def f(
        colour: Colour,
        point: Point,
        box: Box,
        options: Options,
        day: date,
        pair: tuple[int, str],
        either: int | list[str],
        anything: Any = None,
    ) -> None: ...

    valid = as_tool(f).validate(
        {
            "colour": "red",
            "point": {"x": "3"},
            "box": {"width": 2},
            "options": {"deep": True},
            "day": "2024-02-29",
            "pair": [1, "a"],
            "either": ["b"],
        }
    )

    assert valid == {
        "colour": Colour.RED,
        "point": Point(x=3),
        "box": Box(2.0),
        "options": {"deep": True},
        "day": date(2024, 2, 29),
        "pair": (1, "a"),
        "either": ["b"],
    }


def test_each_problem_is_one_line_with_its_path_and_value_and_no_link() -> None:
    def f(path: str, points: list[Point], colour: Colour = Colour.RED, n: Annotated[int, Field(ge=1)] = 1) -> None: ...

    found = problems(f, pth="x", points=[{"x": 1}, {"x": "one", "y": None}, {}], colour="green", n=0)

    assert found == [
        "path: is required",
        "points[1].x: should be a valid integer, unable to parse string as an integer, not 'one'",
        "points[2].x: is required",
        "colour: should be 'red' or 'blue', not 'green'",
        "n: should be greater than or equal to 1, not 0",
        "pth: there is no such argument; did you mean 'path'?",
    ]


def test_a_problem_in_one_form_of_a_union_says_which_form() -> None:
    class Circle(BaseModel):
        radius: float

    def draw(shape: Circle | Point) -> None: ...

    assert problems(draw, shape={}) == ["shape.radius: is required (as Circle)", "shape.x: is required (as Point)"]


def test_the_value_in_a_problem_is_short_and_a_broken_repr_does_no_harm() -> None:
    def f(n: int) -> None: ...

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no repr")

    long = problems(f, n="x" * 100_000)[0]

    assert len(long) < 200
    assert problems(f, n=Broken())[0].startswith("n: should be a valid integer, not <Broken instance")


def test_many_problems_are_cut_to_twenty_lines() -> None:
    def f(numbers: list[int]) -> None: ...

    found = problems(f, numbers=["x"] * 50)

    assert len(found) == 21
    assert found[-1] == "and 30 more"


def test_an_explicit_null_for_an_optional_parameter_that_cannot_be_null_counts_as_not_given() -> None:
    def f(a: int, b: int = 2, c: int | None = 3, d: int = None, point: Point = Point(x=1)) -> None: ...  # type: ignore[assignment]  # noqa: B008, RUF013

    made = as_tool(f)

    assert made.validate({"a": 1, "b": None, "c": None, "d": None}) == {"a": 1, "c": None}
    assert made.validate({"a": 1, "point": {"x": 4, "y": None}}) == {"a": 1, "point": Point(x=4)}
    assert made.validate({"a": 1, "unknown": None}) == {"a": 1}
    assert problems(f, a=None, b=None) == ["a: should be a valid integer, not null"]
    assert problems(f, a=1, point={"x": None}) == ["point.x: should be a valid integer, not null"]


def test_defaults_of_field_are_filled_and_plain_defaults_are_left_to_the_function() -> None:
    def f(
        a: int = 1,
        b: Annotated[list[int], Field(default_factory=lambda: [7])] = ...,  # type: ignore[assignment]
        c: int = Field(default=3),
        d: Annotated[int, Field(default=4)] = 5,
    ) -> None: ...

    f.__defaults__ = (1, Field(default_factory=lambda: [7]), Field(default=3), 5)
    first, second = as_tool(f).validate({}), as_tool(f).validate({})

    assert first["c"] == 3
    assert first["b"] == [7]
    assert first["b"] is not second["b"]
    assert "a" not in first


async def test_odd_parameter_names_are_no_trouble() -> None:
    def f(
        schema: str, model_config: int, self: bool, cls: str, json: Annotated[str, Field(alias="from")], copy: int = 1
    ) -> Any:
        return schema, model_config, self, cls, json, copy

    made = as_tool(f)
    valid = made.validate({"schema": "s", "model_config": 1, "self": True, "cls": "c", "from": "here"})

    assert list(made.spec.parameters["properties"]) == ["schema", "model_config", "self", "cls", "from", "copy"]
    assert made.run_blocking(valid, ToolCall("c", "f", {}), None) == ("s", 1, True, "c", "here", 1)
    assert made.validate(valid) == valid


def test_extra_keywords_are_taken_where_the_function_takes_them() -> None:
    def plain(a: int, **rest: Any) -> None: ...

    def typed(a: int, **rest: int) -> None: ...

    assert as_tool(plain).validate({"a": 1, "b": "x"}) == {"a": 1, "b": "x"}
    assert as_tool(typed).validate({"a": 1, "b": "2"}) == {"a": 1, "b": 2}
    assert parameters(plain)["additionalProperties"] is True
    with pytest.raises(ToolArgumentError):
        as_tool(typed).validate({"a": 1, "b": "x"})


def test_positional_only_parameters_are_bound_by_place() -> None:
    def f(a: int, b: int = 2, /, c: int = 3) -> tuple[int, int, int]:
        return a, b, c

    made = as_tool(f)
    call = ToolCall("c", "f", {})

    assert made.run_blocking(made.validate({"a": "1"}), call, None) == (1, 2, 3)
    assert made.run_blocking(made.validate({"a": 1, "c": 9, "b": 8}), call, None) == (1, 8, 9)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        made.run_blocking({"b": 1}, call, None)


def test_a_star_parameter_is_refused_with_the_remedy() -> None:
    def f(*names: str) -> None: ...

    with pytest.raises(ConfigurationError, match=r"tool 'f' takes \*names, which a model cannot fill; take a list"):
        as_tool(f)


def test_a_partial_hides_what_it_has_already_given() -> None:
    def send(user: str, text: str, urgent: bool = False) -> str:
        """Send a text."""
        return f"{user} {text} {urgent}"

    for bound in (functools.partial(send, "bob"), functools.partial(send, user="bob")):
        made = as_tool(bound)
        assert made.name == "send"
        assert made.spec.description == "Send a text."
        assert list(made.spec.parameters["properties"]) == ["text", "urgent"]
        assert made.run_blocking(made.validate({"text": "hi"}), ToolCall("c", "send", {}), None) == "bob hi False"
        with pytest.raises(ToolArgumentError):
            made.validate({"text": "hi", "user": "eve"})


def test_methods_and_callable_objects_are_tools() -> None:
    class Shop:
        """Sells things."""

        def __init__(self, name: str) -> None:
            self.name = name

        def buy(self, item: str) -> str:
            """Buy an item."""
            return f"{self.name} {item}"

        async def __call__(self, item: str) -> str:
            return f"called {self.name} {item}"

        @classmethod
        def open(cls, hours: int) -> str:
            return f"{cls.__name__} {hours}"

    first, second = Shop("a"), Shop("b")
    call = ToolCall("c", "buy", {})

    assert [as_tool(shop.buy).run_blocking({"item": "x"}, call, None) for shop in (first, second)] == ["a x", "b x"]
    assert as_tool(first.buy).spec.parameters["required"] == ["item"]
    assert as_tool(Shop.open).run_blocking({"hours": 3}, call, None) == "Shop 3"
    assert (as_tool(first).name, as_tool(first).spec.description, as_tool(first).blocking) == (
        "shop",
        "Sells things.",
        False,
    )


def test_a_wrapped_function_is_seen_as_what_it_wraps() -> None:
    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) + "!"

        return wrapper

    @functools.lru_cache
    @decorate
    def greet(name: str, point: Point | None = None) -> str:
        """Greet.

        Args:
            name: who.
        """
        return f"hi {name}"

    made = as_tool(greet)

    assert made.spec.parameters["properties"]["name"] == {"type": "string", "description": "who."}
    assert made.run_blocking(made.validate({"name": "bob"}), ToolCall("c", "greet", {}), None) == "hi bob!"


def test_a_signature_is_read_once_per_function_and_the_function_can_still_be_freed() -> None:
    def f(a: int) -> None: ...

    assert as_tool(f).spec.parameters is tool(f, name="other").spec.parameters
    gone = weakref.ref(f)
    del f
    gc.collect()

    assert gone() is None


def test_generators_lambdas_and_builtins_without_signature_are_refused_with_the_remedy() -> None:
    def numbers() -> Any:
        yield 1

    async def later() -> Any:
        yield 1

    for function in (numbers, later):
        with pytest.raises(ConfigurationError, match="is a generator function; return the whole result instead"):
            as_tool(function)
    with pytest.raises(ConfigurationError, match=r"'<lambda>' cannot be the name of a tool .*tool\(function, name="):
        as_tool(lambda a: a)
    with pytest.raises(ConfigurationError, match="cannot be read; wrap it in a function of your own"):
        as_tool(min)


def test_a_parameter_that_only_the_program_fills_is_not_shown_to_the_model() -> None:
    from langchain_core.tools import InjectedToolArg, InjectedToolCallId

    def f(a: int, call_id: Annotated[str, InjectedToolCallId], secret: Annotated[str, InjectedToolArg] = "none") -> str:
        return f"{a} {call_id} {secret}"

    made = as_tool(f)

    assert list(made.spec.parameters["properties"]) == ["a"]
    assert made.run_blocking(made.validate({"a": 1}), ToolCall("c7", "f", {}), None) == "1 c7 none"
    assert problems(f, a=1, secret="mine") == ["secret: there is no such argument; there are a"]
