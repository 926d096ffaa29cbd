"""What an import may load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

_CODE = """
import json, sys
sys.path.insert(0, {source!r})
before = set(sys.modules)
import {module}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded_by(module: str) -> list[str]:
    """Return the modules that an import brings into a new interpreter."""
    code = _CODE.format(source=str(SOURCE), module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [str(name) for name in json.loads(done.stdout)]


def foreign(modules: list[str]) -> set[str]:
    tops = {name.partition(".")[0] for name in modules}
    return tops - set(sys.stdlib_module_names) - {"graphwright"}


def test_importing_the_package_loads_nothing_else_of_it_and_nothing_foreign() -> None:
    modules = loaded_by("graphwright")

    assert [name for name in modules if name.startswith("graphwright")] == ["graphwright"]
    assert foreign(modules) == set()
    assert not {"asyncio", "dataclasses", "inspect", "typing_extensions"} & set(modules)


@pytest.mark.parametrize(
    "module",
    [
        "graphwright.exceptions, graphwright.types, graphwright.usage, graphwright.caller, graphwright.messages",
        "graphwright.run_events, graphwright.run_scope, graphwright.models",
        "graphwright.cli.main",
        "graphwright.compat.promptise",
    ],
)
def test_a_light_module_loads_nothing_foreign(module: str) -> None:
    assert foreign(loaded_by(module)) == set()
