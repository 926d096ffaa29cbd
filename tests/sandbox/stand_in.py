"""A stand-in for the command line of a container engine: it notes what it is asked and runs `run` in bubblewrap.

Only the front of an engine is tested with it. Whether a real one enforces what it is told is not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

SCRIPT = """#!{python}
import json, os, sys

settings = json.load(open({settings!r}))
words = sys.argv[1:]
with open({log!r}, "a") as file:
    file.write(json.dumps({{"words": words, "env": sorted(os.environ)}}) + "\\n")
if words[0] == "info":
    if settings["info"] is None:
        sys.exit("Cannot connect to the daemon")
    print(json.dumps(settings["info"]))
elif words[:2] == ["image", "inspect"]:
    if words[2] not in settings["images"]:
        sys.exit("No such image: " + words[2])
    print(json.dumps([{{"Id": "sha256:1"}}]))
elif words[0] == "run":
    if settings["refuses"]:
        sys.exit(settings["refuses"])
    at = words.index("--entrypoint")
    command = [words[at + 1], *words[at + 3 :]]
    workdir = words[words.index("--workdir") + 1]
    box = ["bwrap", "--unshare-all", "--as-pid-1", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink"]
    box += ["usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"]
    box += ["--proc", "/proc", "--dev", "/dev"]
    box += ["--tmpfs", "/tmp", "--tmpfs", workdir, "--chdir", workdir, "--clearenv", "--"]
    os.execvp("bwrap", [*box, *command])
"""

INFO = {
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
    "SecurityOptions": ["name=seccomp,profile=builtin"],
    "Runtimes": {"runc": {}},
}


class StandIn:
    """The program, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "docker"
        self._log = folder / "asked"
        self._settings = folder / "settings"
        self._log.touch()
        self.set()
        self.program.write_text(
            SCRIPT.format(python=sys.executable, settings=str(self._settings), log=str(self._log)), encoding="utf-8"
        )
        self.program.chmod(0o755)

    def set(self, *, info: object = INFO, images: tuple[str, ...] = ("python:3.11-slim",), refuses: str = "") -> None:
        """Choose how the engine is."""
        self._settings.write_text(json.dumps({"info": info, "images": images, "refuses": refuses}), encoding="utf-8")

    def asked(self, word: str) -> list[list[str]]:
        """Return the command lines that begin with a word."""
        lines = [json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines()]
        return [line["words"] for line in lines if line["words"][0] == word]

    def environments(self) -> set[str]:
        """Return the names of all variables that it was ever given."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return {name for line in lines for name in json.loads(line)["env"]}
