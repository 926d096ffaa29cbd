"""Live a scenario in processes of its own, which are killed for real."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import multiprocessing
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

from graphwright._internal.threads import run_in_thread
from graphwright.exceptions import ConfigurationError
from graphwright.runlog import SQLiteRunLog
from graphwright.testing._crash_life import Leg, come_back, finish, look
from graphwright.testing._power import CrashPoint, Power, ShakyLog, World

__all__ = ["ProcessLife", "load_scenario"]

_LONGEST_SECONDS = 60.0


def load_scenario(named: str) -> Any:
    """Return the scenario that `"path/of/file.py:name"` or `"package.module:name"` names.

    Raises:
        ConfigurationError: there is none of that name.
    """
    place, _, name = named.rpartition(":")
    if not place.endswith(".py"):
        module = importlib.import_module(place)
    else:
        spec = importlib.util.spec_from_file_location("graphwright_scenario", place)
        if spec is None or spec.loader is None or not Path(place).exists():
            raise ConfigurationError(f"there is no file {place!r}; name a scenario as 'path/of/file.py:name'")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise ConfigurationError(f"{place!r} has no {name!r}; name a scenario as 'path/of/file.py:name'")
    return getattr(module, name)


class ProcessLife:
    """Runs in child processes: one that is killed, and a second one that goes on."""

    def __init__(self, named: str, scenario: Any) -> None:
        self._named = named
        self._scenario = scenario
        kind = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        self._processes: Any = multiprocessing.get_context(kind)
        if kind == "forkserver":
            self._processes.set_forkserver_preload(["graphwright.testing._crash_child", "graphwright.agent"])

    async def live(self, point: CrashPoint | None) -> tuple[Leg, list[str]]:
        """Run the scenario, killed at `point`, and return what it came to and the operations on its log."""
        with tempfile.TemporaryDirectory(prefix="graphwright-crash-") as folder:
            code = await run_in_thread(self._child, folder, point, False)
            if point is not None:
                if code != -9:
                    leg = Leg(point, error=AssertionError(f"the process was to be killed and ended with {code}"))
                    return leg, []
                code = await run_in_thread(self._child, folder, point, True)
            if code != 0:
                return Leg(point, error=AssertionError(f"the process that went on ended with {code}")), []
            return await run_in_thread(_told, folder)

    def _child(self, folder: str, point: CrashPoint | None, comes_back: bool) -> int | None:
        child = self._processes.Process(target=_live, args=(self._named, folder, point, comes_back), daemon=True)
        child.start()
        child.join(_LONGEST_SECONDS)
        if child.is_alive():
            child.kill()
            child.join()
            return None
        code: int | None = child.exitcode
        return code


def _told(folder: str) -> tuple[Leg, list[str]]:
    """Return what a child of this very process wrote, into a folder that nobody else can read."""
    leg, names = pickle.loads(Path(folder, "leg").read_bytes())
    return leg, names


def _live(named: str, folder: str, point: CrashPoint | None, comes_back: bool) -> None:
    """Do the work of a child process."""
    leg, names = asyncio.run(_lived(load_scenario(named), folder, point, comes_back))
    leg.error = AssertionError(f"{type(leg.error).__name__}: {leg.error}") if leg.error is not None else None
    Path(folder, "leg").write_bytes(pickle.dumps((leg, names)))


async def _lived(scenario: Any, folder: str, point: CrashPoint | None, comes_back: bool) -> tuple[Leg, list[str]]:
    power = Power(None if comes_back else point, kill="process")
    log = SQLiteRunLog(Path(folder, "runs.db"))
    shaky = ShakyLog(log, power)
    world = World(Path(folder, "world"), power)
    leg = Leg(point)
    try:
        if comes_back:
            result = await come_back(scenario, shaky, world, leg)
        else:
            result = await finish(scenario, shaky, world, await scenario.run(shaky, world))
        await look(leg, log, world, result)
    except Exception as error:  # a scenario that fails after a crash is what is looked for
        leg.error = error
    finally:
        await log.aclose()
    return leg, power.names
