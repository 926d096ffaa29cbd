"""What must not be written into the repository: paths of one machine, hosts of a registry, ticket numbers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ME = Path(__file__).relative_to(ROOT).as_posix()
TEXT = {".cfg", ".css", ".html", ".json", ".jsonl", ".lock", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml", ""}

HOSTS = re.compile(r"py[p]i\.org|python[h]osted\.org|registry\.npm[j]s")
MACHINE = re.compile(r"(?<![\w.:/~-])/(?:work|root|tmp|opt|home|Users)/[\w.]")
TICKETS = re.compile(r"\bRB-\d{3}\b|\b[Ii]ssue #?\d|(?<![\w&/#])#\d{1,4}\b(?![\w;])")


def tracked() -> list[str]:
    """Return the files that are or would be committed."""
    git = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("this is no git checkout")
    files = [name for name in done.stdout.split("\0") if name and name != ME and (ROOT / name).is_file()]
    return [name for name in files if Path(name).suffix in TEXT]


def found(pattern: re.Pattern[str], *, leave_out: tuple[str, ...] = ()) -> list[str]:
    return [
        f"{name}:{number}: {match.group()}"
        for name in tracked()
        if not name.startswith(leave_out)
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        for match in [pattern.search(line)]
        if match
    ]


def test_no_file_names_the_host_of_a_registry() -> None:
    assert found(HOSTS) == []


def test_no_file_names_a_path_of_one_machine() -> None:
    assert found(MACHINE, leave_out=("tests/data/",)) == []


def test_no_file_names_a_ticket() -> None:
    assert found(TICKETS, leave_out=("tests/data/", "requirements-dev.lock")) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (HOSTS, "https://py" + "pi.org/simple"),
        (MACHINE, 'open("/' + 'tmp/x")'),
        (TICKETS, "see RB" + "-012"),
        (TICKETS, "fixes #" + "12"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], text: str) -> None:
    assert pattern.search(text)
