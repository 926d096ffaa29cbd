from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from graphwright.compat import promptise
from graphwright.exceptions import ConfigurationError, FeatureOffError

HERE = Path(__file__).parent


def lines_of(name: str) -> list[tuple[str, str]]:
    """Return the (module, name) pairs of a data file; the name is empty where a line is a module."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    split = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return [(module, name) for module, _, name in split]


PATHS = lines_of("promptise_paths.txt")
PENDING = lines_of("promptise_pending.txt")


@pytest.fixture(autouse=True)
def aliases() -> Iterator[None]:
    promptise.install()
    yield
    promptise.uninstall()


def ours(module: str) -> str:
    return module.replace("promptise", "graphwright", 1)


def exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize(("module", "name"), PATHS)
def test_a_path_of_the_reference_page_leads_to_the_same_object_here(module: str, name: str) -> None:
    if not exists(ours(module)):
        missing = ".".join(ours(module).split(".")[:2]) if module.count(".") == 2 else ours(module)
        with pytest.raises(FeatureOffError, match=f"'{missing}") as caught:
            importlib.import_module(module)
        assert isinstance(caught.value, ImportError)
        return
    found = importlib.import_module(module)

    assert found is importlib.import_module(ours(module))
    assert found.__name__ == ours(module)
    assert found.__spec__ is not None
    assert found.__spec__.name == ours(module)
    if name and (module, name) not in PENDING:
        assert getattr(found, name) is getattr(importlib.import_module(ours(module)), name)


def test_a_pending_name_is_taken_off_the_list_once_it_is_there() -> None:
    landed = []
    for module, name in PENDING:
        if not exists(ours(module)):
            landed.append(f"{module} is no module here; a missing module needs no line")
            continue
        try:
            getattr(importlib.import_module(ours(module)), name)
        except (AttributeError, FeatureOffError):
            continue
        landed.append(f"{module} {name} is there now")

    assert set(PENDING) <= set(PATHS)
    assert landed == [], "remove these lines from promptise_pending.txt"


def run(code: str, *, folder: Path | None = None) -> str:
    """Run code in a new interpreter and return what it printed."""
    source = str(Path(promptise.__file__).parents[2])
    start = f"import sys; sys.path[:0] = {[str(folder), source] if folder else [source]!r}\n"
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_asking_for_the_paths_imports_nothing_of_ours_before_it_is_used() -> None:
    printed = run(
        "import graphwright.compat.promptise\n"
        "import promptise\n"
        "print(sorted(name for name in sys.modules if name.startswith('graphwright.engine')))\n"
        "import promptise.engine.state\n"
        "print(promptise.engine.state.NodeFlag.ENTRY.value)\n"
        "from promptise.engine.state import NodeFlag\n"
        "import graphwright.engine.state\n"
        "print(NodeFlag is graphwright.engine.state.NodeFlag)"
    )

    assert printed.splitlines() == ["[]", "entry", "True"]


def test_without_the_request_there_is_no_promptise() -> None:
    assert run("from importlib.util import find_spec\nimport graphwright\nprint(find_spec('promptise'))") == "None"


@pytest.mark.parametrize("load_first", [True, False])
def test_an_installed_package_of_that_name_is_never_hidden(tmp_path: Path, load_first: bool) -> None:
    (tmp_path / "promptise").mkdir()
    (tmp_path / "promptise" / "__init__.py").write_text("theirs = True\n")
    printed = run(
        ("import promptise\n" if load_first else "") + "from graphwright.exceptions import ConfigurationError\n"
        "try:\n    import graphwright.compat.promptise\n"
        "except ConfigurationError as error:\n    print(error)\n"
        "import promptise\nprint(promptise.theirs)",
        folder=tmp_path,
    )

    message, theirs = printed.splitlines()
    assert str(tmp_path) in message
    assert "'promptise'" in message
    assert theirs == "True"


def test_a_module_that_lands_later_works_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import graphwright

    with pytest.raises(FeatureOffError, match=r"graphwright\.landed_later"):
        importlib.import_module("promptise.landed_later")

    (tmp_path / "landed_later.py").write_text("answer = 42\n")
    monkeypatch.setattr(graphwright, "__path__", [*graphwright.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    try:
        assert importlib.import_module("promptise.landed_later").answer == 42
    finally:
        sys.modules.pop("graphwright.landed_later", None)
        vars(graphwright).pop("landed_later", None)


@pytest.mark.parametrize("name", ["promptise._internal", "promptise.engine._loop", "promptise.usage.tokens"])
def test_what_is_private_or_below_a_plain_module_is_not_found(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=name):
        importlib.import_module(name)


def test_installing_twice_is_one_request_and_uninstalling_ends_it() -> None:
    finders = len(sys.meta_path)
    promptise.install()
    assert len(sys.meta_path) == finders

    state = importlib.import_module("promptise.engine.state")
    promptise.uninstall()

    assert len(sys.meta_path) == finders - 1
    assert [name for name in sys.modules if name.split(".")[0] == "promptise"] == []
    assert state.NodeFlag("entry").name == "ENTRY"
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("promptise.engine.state")


def test_a_loaded_stranger_is_refused_in_this_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    promptise.uninstall()
    monkeypatch.setitem(sys.modules, "promptise", type(sys)("promptise"))

    with pytest.raises(ConfigurationError, match="already loaded"):
        promptise.install()
    monkeypatch.undo()
