from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import graphwright
from graphwright.compat import sonika
from graphwright.exceptions import ConfigurationError, FeatureOffError

HERE = Path(__file__).parent


def lines_of(name: str) -> list[tuple[str, str]]:
    """Return the (module, name) pairs of a data file; the name is empty where a line is a module."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    split = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return [(module, name) for module, _, name in split]


PATHS = lines_of("sonika_paths.txt")
PENDING = lines_of("sonika_pending.txt")


@pytest.fixture(autouse=True)
def aliases() -> Iterator[None]:
    sonika.install()
    yield
    sonika.uninstall()


def home_of(module: str, name: str) -> str:
    below = module.removeprefix("sonika_ai_toolkit").removeprefix(".")
    return next(home for home, names in sonika.MODULES[below].items() if name in names.split())


@pytest.mark.parametrize(("module", "name"), PATHS)
def test_a_path_of_the_reference_leads_to_the_same_object_here(module: str, name: str) -> None:
    found = importlib.import_module(module)

    assert found.__name__ == module
    if not name:
        assert dir(found) == found.__all__ == [each for each in found.__all__ if getattr(found, each) is not None]
    elif (module, name) in PENDING:
        assert name not in dir(found)
        with pytest.raises(FeatureOffError, match=name) as caught:
            getattr(found, name)
        assert isinstance(caught.value, ImportError)
    else:
        assert getattr(found, name) is getattr(import_module(home_of(module, name)), name)
        assert name in found.__all__


def test_the_table_and_the_list_of_paths_name_the_same_things() -> None:
    table = {
        (f"sonika_ai_toolkit.{below}".rstrip("."), name)
        for below, homes in sonika.MODULES.items()
        for names in homes.values()
        for name in names.split()
    }
    named = {entry for entry in PATHS if entry[1]}

    assert named <= table
    assert {entry for entry in table if entry[0] == "sonika_ai_toolkit"} <= named
    assert {entry for entry in table if home_of(*entry) == ""} == set(PENDING) <= named


def test_a_pending_name_is_taken_off_the_list_once_it_is_there() -> None:
    places = ("graphwright", "graphwright.orchestrator", "graphwright.orchestrator.guards", "graphwright.tools.builtin")
    landed = [f"{place}.{name}" for _, name in PENDING for place in places if hasattr(import_module(place), name)]

    assert landed == [], "lead to it in compat/sonika.py, and remove the line from sonika_pending.txt"


def test_what_is_in_neither_package_is_an_import_error_that_names_it() -> None:
    with pytest.raises(ImportError, match=r"sonika_ai_toolkit\.Nonsense"):
        exec("from sonika_ai_toolkit import Nonsense")
    with pytest.raises(ImportError, match="cannot import name 'Nonsense'"):
        exec("from sonika_ai_toolkit.guards import Nonsense")
    with pytest.raises(FeatureOffError, match=r"sonika_ai_toolkit\.classifiers"):
        importlib.import_module("sonika_ai_toolkit.classifiers")
    with pytest.raises(AttributeError, match="nonsense"):
        _ = importlib.import_module("sonika_ai_toolkit").nonsense


def test_a_star_import_brings_what_is_here_and_nothing_else() -> None:
    space: dict[str, object] = {}

    exec("from sonika_ai_toolkit import *", space)

    brought = {name for name in space if name != "__builtins__"}
    assert brought == {name for module, name in PATHS if module == "sonika_ai_toolkit" and name} - {
        name for module, name in PENDING if module == "sonika_ai_toolkit"
    }
    assert space["OrchestratorBot"] is graphwright.OrchestratorBot


def run(code: str, *, folder: Path | None = None) -> str:
    """Run code in a new interpreter and return what it printed."""
    source = str(Path(sonika.__file__).parents[2])
    start = f"import sys; sys.path[:0] = {[str(folder), source] if folder else [source]!r}\n"
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_asking_for_the_paths_loads_neither_our_bot_nor_a_third_party_package() -> None:
    printed = run(
        "import graphwright.compat.sonika\n"
        "import sonika_ai_toolkit, sonika_ai_toolkit.guards, sonika_ai_toolkit.tools\n"
        "ours = ('graphwright.orchestrator', 'graphwright.tools', 'langchain', 'pydantic')\n"
        "print(sorted(name for name in sys.modules if name.startswith(ours)))\n"
        "from sonika_ai_toolkit import OrchestratorBot\n"
        "import graphwright\n"
        "print(OrchestratorBot is graphwright.OrchestratorBot)"
    )

    assert printed.splitlines() == ["[]", "True"]


def test_without_the_request_there_is_no_such_package() -> None:
    code = "from importlib.util import find_spec\nimport graphwright\nprint(find_spec('sonika_ai_toolkit'))"

    assert run(code) == "None"


@pytest.mark.parametrize("load_first", [True, False])
def test_an_installed_package_of_that_name_is_never_hidden(tmp_path: Path, load_first: bool) -> None:
    (tmp_path / "sonika_ai_toolkit").mkdir()
    (tmp_path / "sonika_ai_toolkit" / "__init__.py").write_text("theirs = True\n")
    printed = run(
        ("import sonika_ai_toolkit\n" if load_first else "") + "from graphwright.exceptions import ConfigurationError\n"
        "try:\n    import graphwright.compat.sonika\n"
        "except ConfigurationError as error:\n    print(error)\n"
        "import sonika_ai_toolkit\nprint(sonika_ai_toolkit.theirs)",
        folder=tmp_path,
    )

    message, theirs = printed.splitlines()
    assert str(tmp_path) in message
    assert "'sonika_ai_toolkit'" in message
    assert theirs == "True"


def test_installing_twice_is_one_request_and_uninstalling_ends_it() -> None:
    finders = len(sys.meta_path)
    sonika.install()
    assert len(sys.meta_path) == finders

    bot = importlib.import_module("sonika_ai_toolkit").OrchestratorBot
    sonika.uninstall()

    assert len(sys.meta_path) == finders - 1
    assert [name for name in sys.modules if name.split(".")[0] == "sonika_ai_toolkit"] == []
    assert bot is graphwright.OrchestratorBot
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("sonika_ai_toolkit")


def test_a_loaded_stranger_is_refused_in_this_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    sonika.uninstall()
    monkeypatch.setitem(sys.modules, "sonika_ai_toolkit", type(sys)("sonika_ai_toolkit"))

    with pytest.raises(ConfigurationError, match="already loaded"):
        sonika.install()
    monkeypatch.undo()
