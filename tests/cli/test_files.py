from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphwright.cli.files import file_tools
from graphwright.exceptions import ConfigurationError, ToolError


def tools_of(root: Path, **options: Any) -> dict[str, Callable[..., Any]]:
    return {tool.__name__: tool for tool in file_tools(root, **options)}


def world(tmp_path: Path) -> Path:
    """Make a folder with a neighbour that must not be seen."""
    (tmp_path / "secret.txt").write_text("the secret\n", encoding="utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "deep.txt").write_text("the secret\n", encoding="utf-8")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
    (root / "sub" / "b.md").write_text("# Title\nTwo of it", encoding="utf-8")
    (root / "link_out.txt").symlink_to(tmp_path / "secret.txt")
    (root / "dir_out").symlink_to(tmp_path / "outside")
    (root / "link_in.txt").symlink_to(root / "a.txt")
    (root / "loop").symlink_to(root / "loop")
    (root / "sub" / "up").symlink_to(root)
    return root


OUTSIDE = [
    "..",
    "../secret.txt",
    "../nothing_here.txt",
    "sub/../../secret.txt",
    "link_out.txt",
    "dir_out",
    "dir_out/deep.txt",
    "dir_out/nothing.txt",
    "/etc/passwd",
    "/nothing/here",
]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("tool", ["list_files", "read_file", "count_lines"])
def test_no_tool_leaves_the_folder_or_tells_what_there_is_outside(tmp_path: Path, tool: str, path: str) -> None:
    tools = tools_of(world(tmp_path))

    with pytest.raises(ToolError) as caught:
        tools[tool](path)

    assert str(caught.value) == f"{path!r} is outside of the folder; give a path below it, such as '.'"


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_search_does_not_leave_the_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(ToolError, match="is outside of the folder"):
        tools_of(world(tmp_path))["search_text"]("secret", path)


@pytest.mark.parametrize("path", ["nothing.txt", "sub/nothing/x", "a.txt/x", "loop", "nul\0byte", "x" * 5000])
def test_a_path_that_cannot_be_used_is_an_error_that_the_model_can_read(tmp_path: Path, path: str) -> None:
    with pytest.raises(ToolError):
        tools_of(world(tmp_path))["read_file"](path)


def test_a_walk_lists_what_is_inside_and_survives_links_in_circles(tmp_path: Path) -> None:
    listing = tools_of(world(tmp_path))["list_files"]()

    assert listing == {
        "total_files": 3,
        "total_bytes": 14 + 14 + 17,
        "complete": True,
        "left_out": 0,
        "files": [
            {"path": "a.txt", "bytes": 14},
            {"path": "link_in.txt", "bytes": 14},
            {"path": "sub/b.md", "bytes": 17},
        ],
    }


def test_a_search_over_everything_never_reads_outside(tmp_path: Path) -> None:
    found = tools_of(world(tmp_path))["search_text"]("secret")

    assert (found["total_matches"], found["files"], found["skipped_files"]) == (0, [], 0)


def test_a_root_that_is_a_link_is_the_folder_that_it_leads_to(tmp_path: Path) -> None:
    root = world(tmp_path)
    (tmp_path / "alias").symlink_to(root)

    tools = tools_of(tmp_path / "alias")

    assert tools["count_lines"]("a.txt")["lines"] == 3
    with pytest.raises(ToolError, match="is outside"):
        tools["count_lines"]("../secret.txt")


@pytest.mark.parametrize("path", [".env", ".git/config", "alias"])
def test_hidden_files_are_out_of_bounds_unless_asked_for(tmp_path: Path, path: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("TOKEN=1\n", encoding="utf-8")
    (tmp_path / ".env").write_text("TOKEN=1\n", encoding="utf-8")
    (tmp_path / "alias").symlink_to(tmp_path / ".env")
    closed, opened = tools_of(tmp_path), tools_of(tmp_path, hidden=True)

    with pytest.raises(ToolError, match="is hidden"):
        closed["read_file"](path)
    assert closed["list_files"]()["total_files"] == 0
    assert closed["search_text"]("TOKEN")["total_matches"] == 0
    assert opened["read_file"](path).startswith("TOKEN=1")
    assert opened["search_text"]("TOKEN")["total_files"] == 3


def test_a_folder_below_a_hidden_one_can_be_the_root(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "lib").mkdir(parents=True)
    (tmp_path / ".venv" / "lib" / "x.py").write_text("x = 1\n", encoding="utf-8")

    assert tools_of(tmp_path / ".venv" / "lib")["count_lines"]("x.py")["lines"] == 1


def test_listing_by_pattern_size_and_limit(tmp_path: Path) -> None:
    for name, size in (("a.py", 10), ("b.py", 30), ("c.txt", 50), ("d.py", 20)):
        (tmp_path / name).write_text("x" * size, encoding="utf-8")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "e.py").write_text("x", encoding="utf-8")

    listing = tools_of(tmp_path)["list_files"](pattern="*.py", by_size=True, limit=2)

    assert [file["path"] for file in listing["files"]] == ["b.py", "d.py"]
    assert (listing["total_files"], listing["total_bytes"], listing["left_out"]) == (3, 60, 1)


def test_reading_goes_on_where_the_note_says_and_ends_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("\n".join(str(number) for number in range(1, 8)) + "\n", encoding="utf-8")
    read = tools_of(tmp_path)["read_file"]

    assert read("n.txt", lines=3) == "1\n2\n3\n[lines 1 to 3; go on with first_line=4]"
    assert read("n.txt", first_line=4, lines=3) == "4\n5\n6\n[lines 4 to 6; go on with first_line=7]"
    assert read("n.txt", first_line=7) == "7\n[the end, at line 7]"
    with pytest.raises(ToolError, match="has 7 lines, so there is no line 8"):
        read("n.txt", first_line=8)


def test_an_empty_file_can_be_read_and_counted(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    tools = tools_of(tmp_path)

    assert tools["read_file"]("empty.txt") == "[the end, at line 0]"
    assert tools["count_lines"]("empty.txt") == {"path": "empty.txt", "lines": 0, "bytes": 0}


@pytest.mark.parametrize(("content", "lines"), [(b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2), (b"a\r\nb\r\n", 2)])
def test_lines_are_counted_with_and_without_a_last_line_break(tmp_path: Path, content: bytes, lines: int) -> None:
    (tmp_path / "x.txt").write_bytes(content)

    assert tools_of(tmp_path)["count_lines"]("x.txt") == {"path": "x.txt", "lines": lines, "bytes": len(content)}


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0\0", bytes(range(128, 256)) * 20])
def test_a_binary_file_is_refused_and_skipped_by_a_search(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "logo.png").write_bytes(content)
    tools = tools_of(tmp_path)

    for tool in ("read_file", "count_lines"):
        with pytest.raises(ToolError, match=r"'logo\.png' is no text file"):
            tools[tool]("logo.png")
    assert tools["search_text"]("PNG")["skipped_files"] == 1


def test_text_in_another_encoding_is_still_read(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes("Grüße aus Köln, wie früher\n".encode("latin-1"))
    (tmp_path / "bom.txt").write_bytes(b"\xef\xbb\xbffirst\n")
    read = tools_of(tmp_path)["read_file"]

    assert read("old.txt") == "Gr��e aus K�ln, wie fr�her\n[the end, at line 1]"
    assert read("bom.txt") == "first\n[the end, at line 1]"


def test_what_is_read_stays_small_however_large_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "one_line.txt").write_text("x" * 3_000_000 + "\nsecond\n", encoding="utf-8")
    (tmp_path / "many.txt").write_text(("y" * 900 + "\n") * 2000, encoding="utf-8")
    read = tools_of(tmp_path)["read_file"]

    long = read("one_line.txt")
    many = read("many.txt", lines=5000)

    assert long == "x" * 1000 + " [the line goes on]\nsecond\n[the end, at line 2]"
    assert len(many) < 22_000
    assert many.endswith("go on with first_line=24]")


def test_a_file_beyond_the_limit_is_neither_counted_nor_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphwright.cli.files._READ_BYTES", 1 << 20)
    (tmp_path / "huge.txt").write_text("line\n" * 500_000, encoding="utf-8")
    tools = tools_of(tmp_path)

    with pytest.raises(ToolError, match="more than 1 MB; it is too large to be counted"):
        tools["count_lines"]("huge.txt")
    with pytest.raises(ToolError, match=r"line 400000 of 'huge\.txt' comes after more than 1 MB; read earlier lines"):
        tools["read_file"]("huge.txt", first_line=400_000)
    assert tools["read_file"]("huge.txt", lines=1) == "line\n[lines 1 to 1; go on with first_line=2]"


def test_a_folder_and_a_pipe_are_no_files_and_nobody_waits_for_the_pipe(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "pipe")
    tools = tools_of(tmp_path)

    with pytest.raises(ToolError, match="'sub' is a folder; list_files shows what is in it"):
        tools["read_file"]("sub")
    with pytest.raises(ToolError, match="'pipe' is no regular file"):
        tools["read_file"]("pipe")
    assert tools["list_files"]()["total_files"] == 0


def test_a_search_tells_every_file_and_at_most_the_wanted_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Needle\n  needle in hay\nneedle\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("no\nneedle\n", encoding="utf-8")
    (tmp_path / "c.txt").write_text("nothing\n", encoding="utf-8")
    (tmp_path / "large.txt").write_text("needle\n" * 800_000, encoding="utf-8")
    search = tools_of(tmp_path)["search_text"]

    found = search("needle", limit=2)
    any_case = search("NEEDLE", path="a.txt", ignore_case=True)

    assert found == {
        "total_matches": 3,
        "total_files": 2,
        "complete": True,
        "skipped_files": 1,
        "files": ["a.txt", "b.txt"],
        "matches": [
            {"path": "a.txt", "line": 2, "text": "needle in hay"},
            {"path": "a.txt", "line": 3, "text": "needle"},
        ],
    }
    assert [match["line"] for match in any_case["matches"]] == [1, 2, 3]


@pytest.mark.parametrize("text", ["", "two\nlines"])
def test_a_search_for_what_no_line_can_hold_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ToolError, match="give a part of one line"):
        tools_of(tmp_path)["search_text"](text)


def test_a_walk_that_is_too_long_says_that_it_is_not_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphwright.cli._folder._MOST_ENTRIES", 3)
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("x\n", encoding="utf-8")

    tools = tools_of(tmp_path)

    assert (tools["list_files"]()["complete"], tools["list_files"]()["total_files"]) == (False, 3)
    assert tools["search_text"]("x")["complete"] is False


def test_a_root_that_is_no_folder_is_refused_with_the_value(tmp_path: Path) -> None:
    (tmp_path / "x.txt").touch()

    with pytest.raises(ConfigurationError, match=r"x\.txt' is no folder"):
        file_tools(tmp_path / "x.txt")
    with pytest.raises(ConfigurationError, match="No such file or directory; give a folder"):
        file_tools(tmp_path / "nothing")
