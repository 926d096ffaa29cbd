from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError, MissingExtraError
from graphwright.orchestrator.front_matter import read_front_matter
from graphwright.orchestrator.skills import (
    Skill,
    load_skill_spec,
    load_skills,
    merge_tools,
    skill_body,
    skills_index,
    skills_text,
)
from graphwright.tools import as_tool

PLAIN_TOOLS = '''
from langchain_core.tools import BaseTool, tool as langchain_tool
from graphwright.tools import tool


class Shout(BaseTool):
    name: str = "shout"
    description: str = "Shout."

    def _run(self, text: str) -> str:
        return text.upper()


@tool
def whisper(text: str) -> str:
    """Whisper."""
    return text.lower()


def helper(text: str) -> str:
    return text


_hidden = tool(helper, name="hidden", description="Hidden.")
'''


def make_skill(root: Path, folder: str, text: str, tools: str | None = None) -> Path:
    path = root / folder
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(text, encoding="utf-8")
    if tools is not None:
        (path / "tools.py").write_text(tools, encoding="utf-8")
    return path


@pytest.fixture(params=["with pyyaml", "without pyyaml"])
def _yaml(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without pyyaml":
        monkeypatch.setitem(sys.modules, "yaml", None)
    else:
        pytest.importorskip("yaml")


@pytest.mark.usefixtures("_yaml")
@pytest.mark.parametrize(
    ("block", "settings"),
    [
        ("name: csv\ndescription: Read tables", {"name": "csv", "description": "Read tables"}),
        ("name: \"csv: all\"\ndescription: 'it''s \"easy\"'", {"name": "csv: all", "description": 'it\'s "easy"'}),
        ("name: yes\nversion: 1.0\n", {"name": "yes", "version": "1.0"}),
        ("tags: [a, 'b', \"c\"]", {"tags": ["a", "b", "c"]}),
        ("tags: []", {"tags": []}),
        ("tags: [a b, c] # two", {"tags": ["a b", "c"]}),
        ("tags:\n  - a\n  - b\nname: x", {"tags": ["a", "b"], "name": "x"}),
        ("tags:\n- a # first\nname: x # last", {"tags": ["a"], "name": "x"}),
        ("# only a comment\n\nname: x", {"name": "x"}),
        ("description:", {"description": ""}),
        ("description: Use when: a table comes", {"description": "Use when: a table comes"}),
        ("", {}),
    ],
)
def test_settings_read_the_same_with_and_without_pyyaml(block: str, settings: dict[str, Any]) -> None:
    assert read_front_matter(f"---\n{block}\n---\nBody\n---\nmore\n") == (settings, "Body\n---\nmore\n")
    assert read_front_matter(f"\ufeff---\r\n{block}\r\n---\r\nBody")[0] == settings


@pytest.mark.usefixtures("_yaml")
@pytest.mark.parametrize(
    "text", ["", "Body", "---", "---\nname: x\nno end", "text\n---\nname: x\n---\n", "----\na: b\n---\n"]
)
def test_without_a_block_that_ends_the_whole_file_is_text(text: str) -> None:
    assert read_front_matter(text) == ({}, text)


@pytest.mark.usefixtures("_yaml")
@pytest.mark.parametrize("block", ["just words", "- a\n- b", "a: *b", "[broken"])
def test_settings_that_are_none_are_refused(block: str) -> None:
    with pytest.raises(ConfigurationError):
        read_front_matter(f"---\n{block}\n---\n")


@pytest.mark.parametrize("block", ["a: >\n  folded\n  text", "a: &x b", 'a: ["b, c", d]', "a:\n  b: c", 'a: "tab\\t"'])
def test_more_of_yaml_needs_pyyaml_and_says_so(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("yaml")
    read_front_matter(f"---\n{block}\n---\n")

    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match=r"graphwright\[yaml\]"):
        read_front_matter(f"---\n{block}\n---\n")


def test_a_skill_is_read_from_its_folder(tmp_path: Path) -> None:
    path = make_skill(tmp_path, "csv", '---\nname: "tables"\ndescription: Read tables\n---\n\nOpen it.\n')

    skill = Skill.from_dir(path)

    assert skill == Skill("tables", "Open it.", "Read tables", [], path)
    assert Skill.from_dir(make_skill(tmp_path, "plain", "Just do it.")).name == "plain"


def test_the_tools_of_a_folder_are_its_tool_objects_and_classes(tmp_path: Path) -> None:
    path = make_skill(tmp_path, "loud", "Shout.", PLAIN_TOOLS)

    assert sorted(as_tool(entry).name for entry in Skill.from_dir(path).tools) == ["shout", "whisper"]
    assert Skill.from_dir(path, load_tools=False).tools == []


def test_a_list_of_tools_is_the_whole_list(tmp_path: Path) -> None:
    path = make_skill(tmp_path, "loud", "Shout.", PLAIN_TOOLS + "\nTOOLS = [helper, Shout]\n")

    tools = Skill.from_dir(path).tools

    assert [as_tool(entry).name for entry in tools] == ["helper", "shout"]


def test_a_folder_is_not_run_when_its_tools_are_not_wanted(tmp_path: Path) -> None:
    make_skill(tmp_path, "loud", "Shout.", f"open({str(tmp_path / 'ran')!r}, 'w').close()")

    assert [skill.name for skill in load_skills(tmp_path, load_tools=False)] == ["loud"]
    assert not (tmp_path / "ran").exists()
    load_skills(tmp_path)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "tools", "why"),
    [
        ("---\njust words\n---\n", None, "the settings at the top are"),
        ("---\nname: [a, b]\n---\n", None, "name is \\['a', 'b'\\]"),
        ("x", "import no_such_module_anywhere", "ModuleNotFoundError"),
        ("x", "raise SystemExit(3)", "SystemExit: 3"),
        ("x", "TOOLS = 5", "TOOLS in .* is 5; make it a list"),
        ("x", "TOOLS = [5]", "is no tool"),
        (
            "x",
            PLAIN_TOOLS + "\nclass Odd(Shout):\n    def __init__(self, x): pass\n",
            "cannot be made without arguments",
        ),
    ],
)
def test_a_broken_skill_is_logged_and_left_out(
    text: str, tools: str | None, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = make_skill(tmp_path, "b_broken", text, tools)
    make_skill(tmp_path, "c_last", "Last.")
    make_skill(tmp_path, "a_first", "First.")
    make_skill(tmp_path, "d_again", "---\nname: a_first\n---\n")
    (tmp_path / "no_skill").mkdir()
    (tmp_path / "file.md").write_text("x")

    with caplog.at_level(logging.WARNING, "graphwright.orchestrator.skills"):
        skills = load_skills(tmp_path)

    assert [skill.name for skill in skills] == ["a_first", "c_last"]
    assert [record.getMessage()[:30] for record in caplog.records] == [
        "the skill in 'b_broken' is lef",
        "the skill in 'd_again' is left",
    ]
    with pytest.raises(ConfigurationError, match=why):
        Skill.from_dir(path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no folder"):
        load_skills(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        Skill.from_dir(tmp_path)


def test_the_index_names_each_skill_on_a_line_of_its_own() -> None:
    skills = [Skill("csv", "Open it.", "Read\n- fake: tables"), Skill("pdf", "Scan it.")]

    assert skills_index(skills).splitlines()[1:] == ["- csv: Read - fake: tables", "- pdf"]
    assert skills_index([]) == skills_text([]) == ""
    assert skills_text(skills) == "Skill csv\n\nOpen it.\n\nSkill pdf\n\nScan it."
    assert load_skill_spec(skills).parameters["properties"]["name"]["enum"] == ["csv", "pdf"]


def test_the_body_of_a_skill_is_its_text_and_an_unknown_one_is_answered_with_the_names(tmp_path: Path) -> None:
    skills = [Skill("csv", "Open it."), Skill("pdf", "Scan it.", path=tmp_path)]

    assert skill_body(skills, "csv") == "Open it."
    assert skill_body(skills, "pdf") == f"Scan it.\n\n(Files that these instructions speak of are in {tmp_path}.)"
    assert skill_body(skills, "xls") == "There is no skill named 'xls'. The skills are: csv, pdf."
    assert skill_body([], None) == "There is no skill named None. The skills are: none."


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_skill_needs_a_name(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="is no name of a skill"):
        Skill(name, "x")


def named(name: str, result: str) -> Any:
    def function() -> str:
        return result

    function.__name__ = name
    return function


def test_the_tools_of_a_skill_are_there_once_it_is_loaded() -> None:
    skills = [Skill("csv", "x", tools=[named("rows", "1")]), Skill("pdf", "x", tools=[named("pages", "2")])]

    assert merge_tools([named("search", "0")], skills, ()).names == ("search",)
    assert merge_tools([named("search", "0")], skills, {"pdf"}).names == ("search", "pages")
    assert merge_tools(None, skills).names == ("rows", "pages")


def test_a_given_tool_wins_over_that_of_a_skill() -> None:
    given = as_tool(named("rows", "given"))
    skills = [Skill("csv", "x", tools=[named("rows", "skill")]), Skill("xls", "x", tools=[named("rows", "other")])]

    assert merge_tools([given], skills).get("rows") is given


def test_a_tool_that_two_skills_share_is_there_with_either() -> None:
    shared = as_tool(named("rows", "1"))
    skills = [Skill("csv", "x", tools=[shared]), Skill("xls", "x", tools=[shared])]

    assert merge_tools([], skills, {"xls"}).names == ("rows",)


@pytest.mark.parametrize("loaded", [None, set(), {"csv"}])
def test_two_tools_of_one_name_are_refused_whatever_is_loaded(loaded: Any) -> None:
    skills = [Skill("csv", "x", tools=[named("rows", "1")]), Skill("xls", "x", tools=[named("rows", "2")])]

    with pytest.raises(ConfigurationError, match="the skills 'csv' and 'xls' both have a tool named 'rows'"):
        merge_tools([], skills, loaded)
    with pytest.raises(ConfigurationError, match="two tools have the name 'rows'"):
        merge_tools([named("rows", "1"), named("rows", "2")], [], loaded)
    with pytest.raises(ConfigurationError, match="a tool has the name 'ask_user', which the bot needs for itself"):
        merge_tools([named("ask_user", "1")], [], loaded, reserved={"ask_user"})
