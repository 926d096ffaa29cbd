from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphwright.exceptions import ConfigurationError, ToolError
from graphwright.tools.builtin import DeleteFileTool, FindFileTool, ListDirTool, ReadFileTool, WriteFileTool
from graphwright.tools.builtin._tree import Tree

FILE_TOOLS = [ReadFileTool, WriteFileTool, DeleteFileTool, ListDirTool, FindFileTool]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("outside")
    return folder


@pytest.mark.parametrize("kind", FILE_TOOLS)
def test_a_file_tool_cannot_be_made_without_a_root(kind: Any) -> None:
    with pytest.raises(TypeError, match="root"):
        kind()


def test_a_root_that_is_no_folder_and_an_exclusion_outside_of_it_are_refused(root: Path) -> None:
    with pytest.raises(ConfigurationError, match="no folder"):
        ReadFileTool(root=root / "missing")
    with pytest.raises(ConfigurationError, match="not inside of root"):
        ReadFileTool(root=root, exclude=["../secret.txt"])
    with pytest.raises(ConfigurationError, match="list of paths"):
        ReadFileTool(root=root, exclude="memory")


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def test_the_risks_are_those_that_the_page_tells(root: Path) -> None:
    risks = {kind.__name__: kind(root=root).risk_level for kind in FILE_TOOLS}

    assert risks == {"ReadFileTool": 1, "WriteFileTool": 1, "DeleteFileTool": 2, "ListDirTool": 0, "FindFileTool": 0}


async def test_what_was_written_is_read_back(root: Path, use: Any) -> None:
    text = "Grüße\r\nzweite Zeile\n"

    assert await use(WriteFileTool(root=root), path="a/b/note.txt", content=text) == "wrote 22 bytes to a/b/note.txt"

    assert await use(ReadFileTool(root=root), path="a/b/note.txt") == text
    assert list(contents(root / "a/b")) == ["note.txt"], "nothing temporary is left"


WAYS_OUT = ["../secret.txt", "link", "folder-link/secret.txt", "sub/../../secret.txt", "{outside}/secret.txt"]


@pytest.mark.parametrize("path", WAYS_OUT)
async def test_no_way_leads_out_of_the_root(path: str, root: Path, use: Any) -> None:
    outside = root.parent
    (root / "sub").mkdir()
    (root / "link").symlink_to(outside / "secret.txt")
    (root / "folder-link").symlink_to(outside)
    path = path.format(outside=outside)

    read = await use.error(ReadFileTool(root=root), path=path)
    written = await use.error(WriteFileTool(root=root), path=path, content="mine")

    assert "outside of the folder that this tool may use" in read
    assert "outside of the folder that this tool may use" in written
    assert (outside / "secret.txt").read_text() == "outside"
    if not path.startswith(str(outside)):
        assert str(outside) not in read + written


async def test_a_link_that_stays_inside_is_followed_and_an_absolute_path_inside_is_fine(root: Path, use: Any) -> None:
    (root / "real.txt").write_text("inside")
    (root / "link.txt").symlink_to("real.txt")

    assert await use(ReadFileTool(root=root), path="link.txt") == "inside"
    assert await use(ReadFileTool(root=root), path=str(root / "real.txt")) == "inside"


@pytest.mark.parametrize("swapped", ["sub", "sub/file.txt"])
async def test_a_link_put_there_after_the_check_is_not_followed(
    swapped: str, root: Path, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "sub").mkdir()
    (root / "sub/file.txt").write_text("inside")
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file.txt").write_text("stolen")
    resolve = Tree.resolve

    def resolve_and_swap(self: Tree, path: str) -> tuple[str, ...]:
        parts = resolve(self, path)
        (root / swapped).rename(root / "moved")
        (root / swapped).symlink_to(elsewhere if swapped == "sub" else elsewhere / "file.txt")
        return parts

    tools: list[tuple[Any, dict[str, Any]]] = [(ReadFileTool, {}), (WriteFileTool, {"content": "mine"})]
    for kind, more in tools:
        with monkeypatch.context() as patch:
            patch.setattr(Tree, "resolve", resolve_and_swap)
            error = await use.error(kind(root=root), path="sub/file.txt", **more)
        assert "stolen" not in error
        assert (elsewhere / "file.txt").read_text() == "stolen"
        (root / swapped).unlink()
        (root / "moved").rename(root / swapped)


@given(path=st.lists(st.sampled_from(["..", ".", "a", "out", "in", "", "f"]), max_size=8).map("/".join))
@settings(max_examples=150, deadline=None)
def test_what_resolves_is_really_inside(path: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.getbasetemp() / "resolved"
    root = base / "root"
    if not root.exists():
        (root / "a").mkdir(parents=True)
        (root / "out").symlink_to(base)
        (root / "in").symlink_to(root / "a")
        (root / "a/f").write_text("x")

    try:
        parts = Tree(root).resolve(path)
    except ToolError:
        return

    assert os.path.realpath(root.joinpath(path)) == os.path.join(os.path.realpath(root), *parts)
    assert ".." not in parts


async def test_a_long_file_is_read_page_by_page_without_breaking_a_character(root: Path, use: Any) -> None:
    text = "".join(f"{number}: äöü€😀\n" for number in range(50))
    (root / "long.txt").write_text(text)
    tool = ReadFileTool(root=root, max_bytes=101)
    pages, offset = [], 0
    while True:
        page, _, footer = (await use(tool, path="long.txt", offset=offset)).rpartition("\n[bytes ")
        pages.append(page)
        if "offset=" not in footer:
            break
        offset = int(footer.rpartition("offset=")[2].rstrip("]"))

    assert "".join(pages) == text
    assert len(pages) > 5
    assert max(len(page.encode()) for page in pages) <= 101


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", b"caf\xe9 latin", b"text\0text"])
async def test_a_binary_file_is_described(data: bytes, root: Path, use: Any) -> None:
    (root / "picture.png").write_bytes(data)

    shown = await use(ReadFileTool(root=root), path="picture.png")

    assert shown == (
        f"[picture.png is a binary file or not UTF-8: {len(data)} bytes, image/png; its content is not shown]"
    )


async def test_what_is_no_file_is_not_read(root: Path, use: Any) -> None:
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    tool = ReadFileTool(root=root)

    assert await use.error(tool, path="pipe") == "'pipe' is a pipe, not a file"
    assert await use.error(tool, path="folder") == "'folder' is a folder, not a file"
    assert await use.error(tool, path=".") == "'.' is a folder; list it with another tool"
    assert await use.error(tool, path="no.txt") == "'no.txt' cannot be read: No such file or directory"
    assert "NUL" in await use.error(tool, path="a\0b")


async def test_create_leaves_a_file_that_is_there(root: Path, use: Any) -> None:
    tool = WriteFileTool(root=root, max_bytes=10)
    await use(tool, path="a.txt", content="first", mode="create")

    error = await use.error(tool, path="a.txt", content="second", mode="create")

    assert error == "'a.txt' is there already (file) and was left as it is"
    assert (root / "a.txt").read_text() == "first"
    assert "at most 10" in await use.error(tool, path="b.txt", content="x" * 11)
    assert not (root / "b.txt").exists()


async def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    root: Path, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    assert "No space left" in await use.error(WriteFileTool(root=root), path="a.txt", content="new")
    assert contents(root) == {"a.txt": "old"}


async def test_a_replaced_file_keeps_its_mode(root: Path, use: Any) -> None:
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o750)

    await use(WriteFileTool(root=root), path="run.sh", content="new")

    assert (root / "run.sh").read_text() == "new"
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o750


def test_a_write_shows_what_it_would_change(root: Path) -> None:
    (root / "a.txt").write_text("one\ntwo\n")

    shown = WriteFileTool(root=root).preview({"path": "a.txt", "content": "one\nthree\n"})

    assert [line for line in shown.splitlines() if not line.startswith(("---", "+++", "@@"))] == [
        " one",
        "-two",
        "+three",
    ]


async def test_delete_takes_files_links_and_empty_folders_only(root: Path, use: Any) -> None:
    (root / "full").mkdir()
    (root / "full/a.txt").write_text("x")
    (root / "link").symlink_to(root.parent / "secret.txt")
    tool = DeleteFileTool(root=root)

    assert await use.error(tool, path="full") == "folder 'full' is not empty; delete what is in it first"
    assert await use(tool, path="full/a.txt") == "deleted the file full/a.txt"
    assert await use(tool, path="full") == "deleted the folder full"
    assert await use(tool, path="link") == "deleted the link link"
    assert "stays" in await use.error(tool, path=".")
    assert "outside" in await use.error(tool, path="../secret.txt")
    assert contents(root) == {}
    assert (root.parent / "secret.txt").exists()


async def test_a_folder_is_listed_in_parts(root: Path, use: Any) -> None:
    for name in ["b.txt", "a.txt", "c.txt"]:
        (root / name).write_text("12345")
    (root / "sub").mkdir()
    (root / "zlink").symlink_to("a.txt")

    assert await use(ListDirTool(root=root)) == "a.txt  5\nb.txt  5\nc.txt  5\nsub/\nzlink  (link)"
    assert await use(ListDirTool(root=root, max_entries=2), offset=1) == (
        "b.txt  5\nc.txt  5\n[2 more; go on with offset=3]"
    )
    assert await use(ListDirTool(root=root), path="sub") == "(empty)"


async def test_files_are_found_by_name_and_by_path(root: Path, use: Any) -> None:
    for name in ["x/one.md", "x/y/two.md", "three.txt"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / "x/y/up").symlink_to(root)
    tool = FindFileTool(root=root)

    assert await use(tool, pattern="*.md") == "x/one.md\nx/y/two.md"
    assert await use(tool, pattern="x/*/two.*") == "x/y/two.md"
    assert await use(tool, pattern="*.txt", path="x") == "no file fits '*.txt'"
    assert await use(FindFileTool(root=root, max_results=1), pattern="*.md") == (
        "x/one.md\n[the first 1; there may be more: narrow the pattern or the path]"
    )


async def test_an_excluded_folder_cannot_be_seen_or_touched(root: Path, use: Any) -> None:
    (root / "Memory").mkdir()
    (root / "Memory/MEMORY.md").write_text("private")
    (root / "alias").symlink_to("Memory")
    options: dict[str, Any] = {"root": root, "exclude": ["Memory", "later"]}

    for path in ["Memory/MEMORY.md", "memory/MEMORY.md", "alias/MEMORY.md", "x/../Memory/MEMORY.md", "later/new.md"]:
        assert "closed to this tool" in await use.error(ReadFileTool(**options), path=path)
        assert "closed to this tool" in await use.error(WriteFileTool(**options), path=path, content="poison")
        assert "closed to this tool" in await use.error(DeleteFileTool(**options), path=path)
    assert await use(ListDirTool(**options)) == "alias  (link)"
    assert await use(FindFileTool(**options), pattern="*.md") == "no file fits '*.md'"
    assert (root / "Memory/MEMORY.md").read_text() == "private"
