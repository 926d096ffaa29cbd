#!/usr/bin/env python3
"""Make the environment that a command needs, then run the command. Needs nothing but Python.

    python3 scripts/start.py demo [ARGS]       run `graphwright demo`, which needs no key
    python3 scripts/start.py test [ARGS]       install what the tests need and run pytest
    python3 scripts/start.py run COMMAND ARGS  run any command of the development environment
    python3 scripts/start.py install ARGS      add packages to the development environment, with the options of pip

The environment is `.venv` beside `pyproject.toml`, or the folder named by GRAPHWRIGHT_VENV. It is made with uv where
uv works, else with venv and pip (GRAPHWRIGHT_INSTALLER=pip or =uv decides it), and is left alone while
`pyproject.toml` and `requirements-dev.lock` stay as they are.
"""

import hashlib
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOCK = os.path.join(ROOT, "requirements-dev.lock")
PYPROJECT = os.path.join(ROOT, "pyproject.toml")
OLDEST = (3, 11)
IN_BIN = "Scripts" if os.name == "nt" else "bin"


def main(arguments):
    """Run one command and return its exit code."""
    if sys.version_info < OLDEST:
        return fail(
            "this is Python {}.{} and Graphwright needs {}.{} or newer; run the command again with a newer one, "
            "for example: python3.12 {}".format(*sys.version_info[:2], *OLDEST, " ".join(sys.argv))
        )
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command in ("-h", "--help"):
        print(__doc__)
        return 0
    if command not in ("demo", "test", "run", "install") or (command in ("run", "install") and not rest):
        return fail(f"no command {' '.join(arguments)!r}; choose demo, test, run COMMAND or install ARGS\n\n{__doc__}")
    environment = Environment(os.environ.get("GRAPHWRIGHT_VENV") or os.path.join(ROOT, ".venv"))
    try:
        environment.prepare("plain" if command == "demo" else "dev")
        if command == "install":
            environment.install(find_uv(), rest)
            return 0
    except InstallError as error:
        return fail(str(error))
    if command == "demo":
        return environment.run(["graphwright", "demo", *rest])
    if command == "test":
        # One worker a core, unless the arguments say otherwise.
        spread = [] if any(option.startswith("-n") for option in rest) else ["-n", "auto", "--dist", "worksteal"]
        return environment.run(["python", "-m", "pytest", *spread, *rest], cwd=ROOT)
    return environment.run(rest)


class InstallError(Exception):
    """The environment could not be made."""


class Environment:
    """A virtual environment with this checkout in it."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.python = self.program("python")

    def program(self, name):
        """Return the path that a program has in the environment."""
        return os.path.join(self.path, IN_BIN, name + (".exe" if os.name == "nt" else ""))

    def prepare(self, level):
        """Install what `level` needs ("plain": what a user gets; "dev": the locked versions), unless it is there."""
        works = self.works()
        if works and (self.has(level) or self.has("dev")):
            return
        uv = find_uv()
        say("making {} with {}".format(self.path, "uv" if uv else "venv and pip"))
        if not works:
            self.create(uv)
        for other in ("plain", "dev"):
            if os.path.exists(self.stamp(other)):
                os.remove(self.stamp(other))
        if level == "plain":
            self.install(uv, ["--editable", ROOT])
        else:
            self.install(uv, ["--require-hashes", "--requirement", LOCK])
            self.install(uv, ["--no-deps", "--no-build-isolation", "--editable", ROOT])
        with open(self.stamp(level), "w", encoding="utf-8") as file:
            file.write(fingerprint())

    def works(self):
        """Whether there is an interpreter in it that starts and is the version of this one."""
        if not os.path.exists(self.python):
            return False
        ask = [self.python, "-c", "import sys; print(*sys.version_info[:2])"]
        answer = subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return answer.returncode == 0 and answer.stdout.split() == [b"%d" % part for part in sys.version_info[:2]]

    def has(self, level):
        """Whether `level` was installed from the files as they are now."""
        try:
            with open(self.stamp(level), encoding="utf-8") as file:
                return file.read() == fingerprint()
        except OSError:
            return False

    def stamp(self, level):
        """Return the file that says what `level` was installed from."""
        return os.path.join(self.path, f"graphwright-{level}.stamp")

    def create(self, uv):
        """Make the environment anew."""
        if os.path.exists(self.path):
            if os.listdir(self.path) and not os.path.exists(os.path.join(self.path, "pyvenv.cfg")):
                raise InstallError(
                    f"{self.path!r} is there and is no virtual environment; name another in GRAPHWRIGHT_VENV"
                )
            shutil.rmtree(self.path)
        if uv:
            step([uv, "venv", "--quiet", "--python", sys.executable, self.path], "make a virtual environment")
        else:
            remedy = "make a virtual environment (on Debian and Ubuntu it needs the package python3-venv)"
            step([sys.executable, "-m", "venv", self.path], remedy)

    def install(self, uv, arguments):
        """Install packages into it."""
        if uv:
            step([uv, "pip", "install", "--quiet", "--python", self.python, *arguments], "install packages")
            return
        if subprocess.run([self.python, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
            step([self.python, "-m", "ensurepip"], "find pip")
        pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        step(pip + arguments, "install packages")

    def run(self, command, cwd=None):
        """Run a command with the environment's programs first, and return its exit code."""
        variables = dict(os.environ, VIRTUAL_ENV=self.path)
        variables["PATH"] = os.path.dirname(self.python) + os.pathsep + os.environ.get("PATH", "")
        variables.pop("PYTHONHOME", None)
        program = self.program(command[0])
        found = program if os.path.exists(program) else shutil.which(command[0], path=variables["PATH"])
        if not found:
            return fail(f"there is no program {command[0]!r} in {self.path} or on the PATH")
        try:
            return subprocess.call([found, *command[1:]], cwd=cwd, env=variables)
        except KeyboardInterrupt:
            return 130


def fingerprint():
    """Return a digest of what an installation is made from."""
    digest = hashlib.sha256(repr((sys.version_info[:2], ROOT)).encode())
    for path in (PYPROJECT, LOCK):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def find_uv():
    """Return the path of a uv that works, or None."""
    wanted = os.environ.get("GRAPHWRIGHT_INSTALLER", "")
    if wanted not in ("", "uv", "pip"):
        raise InstallError(f"GRAPHWRIGHT_INSTALLER is {wanted!r}; set it to 'uv' or 'pip', or leave it out")
    uv = None if wanted == "pip" else shutil.which("uv")
    # A version manager's shim can be on the PATH for a uv that is not installed.
    if uv and subprocess.run([uv, "--version"], capture_output=True, check=False).returncode:
        uv = None
    if wanted == "uv" and not uv:
        raise InstallError("GRAPHWRIGHT_INSTALLER is 'uv', and no uv on the PATH works; install it or leave it out")
    return uv


def step(command, purpose):
    """Run one command of the installation; its output is shown."""
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code:
        raise InstallError("could not {}: {!r} ended with code {}".format(purpose, " ".join(command), code))


def say(text):
    """Tell what is going on, beside the output of the command itself."""
    print(f"start: {text}", file=sys.stderr, flush=True)


def fail(text):
    """Tell what went wrong and return the exit code for it."""
    say(text)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
