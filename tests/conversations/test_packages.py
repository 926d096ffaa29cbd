"""Stores whose package is not installed, and what importing the stores loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphwright.conversations import PostgresConversationStore, RedisConversationStore
from graphwright.exceptions import MissingExtraError

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(
    ("module", "make", "extra"),
    [
        ("asyncpg", lambda: PostgresConversationStore("postgresql://localhost/x"), "postgres"),
        ("redis.asyncio", lambda: RedisConversationStore(), "redis"),
    ],
)
def test_a_missing_package_is_told_when_the_store_is_made(
    monkeypatch: pytest.MonkeyPatch, module: str, make: object, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert callable(make)

    with pytest.raises(MissingExtraError, match=rf"pip install 'graphwright\[{extra}\]'"):
        make()


def test_importing_the_stores_loads_no_other_package() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); before = set(sys.modules); "
        "import graphwright.conversations; "
        "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("['graphwright']\n", "")
