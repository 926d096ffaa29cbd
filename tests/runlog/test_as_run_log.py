"""What `runlog=` takes."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError
from graphwright.runlog import MemoryRunLog, RunInfo, SQLiteRunLog, as_run_log


def test_none_is_no_log() -> None:
    assert as_run_log(None) is None


def test_a_log_is_itself() -> None:
    log = MemoryRunLog()

    assert as_run_log(log) is log


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_a_file(kind: Any, tmp_path: Path) -> None:
    log = as_run_log(kind(tmp_path / "runs.db"))

    assert isinstance(log, SQLiteRunLog)
    assert log.path == tmp_path / "runs.db"
    assert list(tmp_path.iterdir()) == []


def test_true_is_the_default_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHWRIGHT_HOME", str(tmp_path / "home"))
    log = as_run_log(True)

    assert isinstance(log, SQLiteRunLog)
    assert log.path == tmp_path / "home" / "graphwright-runs.db"
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("value", [False, 3, b"runs.db", {"path": "x"}, SQLiteRunLog])
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="give a run log such as MemoryRunLog"):
        as_run_log(value)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="XDG folders are those of Linux")
def test_without_a_home_the_file_is_in_the_users_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHWRIGHT_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert SQLiteRunLog().path == tmp_path / "graphwright" / "graphwright-runs.db"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
async def test_the_default_file_is_made_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHWRIGHT_HOME", str(tmp_path / "home"))
    log = SQLiteRunLog()
    writer = await log.begin(RunInfo(run_id="r", thread_id="t"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [log.path.parent, *log.path.parent.iterdir()]}
    await writer.close("completed")
    await log.aclose()

    assert modes["home"] == 0o700
    assert {mode for name, mode in modes.items() if name != "home"} == {0o600}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": ":memory:"}, "use MemoryRunLog"),
        ({"path": ""}, "name a file"),
        ({"synchronous": "off"}, "use one of NORMAL, FULL, EXTRA"),
        ({"lease_seconds": 0}, "lease_seconds is 0"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        SQLiteRunLog(**options)
