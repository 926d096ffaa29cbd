"""`__all__` of every module against what the module really holds."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import tomllib
from pathlib import Path

import pytest

import graphwright
from graphwright.compat import promptise
from graphwright.orchestrator.names import MODULE_OF as BOT_NAMES

ROOT = Path(__file__).parents[2]
PACKAGE = Path(graphwright.__file__).parent


def public_modules() -> list[str]:
    found = [info.name for info in pkgutil.walk_packages(graphwright.__path__, "graphwright.")]
    return ["graphwright", *(name for name in found if "._" not in name)]


def source_of(name: str) -> ast.Module:
    path = PACKAGE.joinpath(*name.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def public_definitions(tree: ast.Module) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


@pytest.mark.parametrize("name", public_modules())
def test_all_of_a_module_is_true(name: str) -> None:
    module = importlib.import_module(name)
    if name == promptise.__name__:
        promptise.uninstall()
    exported = getattr(module, "__all__", [])

    missing = [entry for entry in exported if not hasattr(module, entry)]
    left_out = public_definitions(source_of(name)) - set(exported)

    assert len(exported) == len(set(exported)), "a name is listed twice"
    assert missing == [], "listed, and not there"
    assert left_out == set(), "public, and not listed; list it or give it an underscore"


@pytest.mark.parametrize("name", graphwright.__all__)
def test_every_everyday_name_resolves_and_is_the_object_of_its_home(name: str) -> None:
    value = getattr(graphwright, name)

    if name != "__version__":
        home = importlib.import_module(graphwright._MODULE_OF[name])
        assert value is getattr(home, name)
        assert name in home.__all__


def test_the_everyday_names_are_few_and_told_to_the_type_checker_as_they_are() -> None:
    told = {
        (node.module, alias.name)
        for block in source_of("graphwright").body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    bots = {entry for entry in told if entry[0] == "graphwright.orchestrator"}
    assert {name for _, name in bots} == set(BOT_NAMES)
    told -= bots
    assert told == {(module, name) for name, module in graphwright._MODULE_OF.items()}
    assert {name for _, name in told} == set(graphwright.__all__) - {"__version__"}
    assert dir(graphwright) == sorted(graphwright.__all__)
    assert len(graphwright.__all__) <= 50


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        graphwright.no_such_name  # noqa: B018
    assert not hasattr(graphwright, "_no_such_name")


def test_the_version_is_the_one_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert graphwright.__version__ == project["version"]


def test_every_extra_that_an_error_names_can_be_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {
        keyword.value.value
        for path in PACKAGE.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Constant)
        if getattr(call.func, "id", "") != "ConfigDict"  # there it says what becomes of unknown keys
    }

    assert named - set(project["optional-dependencies"]) == set()
