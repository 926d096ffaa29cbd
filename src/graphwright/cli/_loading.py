"""Take tools, models and graphs out of Python files that the user names."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from graphwright.cli._text import one_line
from graphwright.exceptions import ConfigurationError

__all__ = ["call_factory", "is_reference", "load_named", "load_reference", "tools_of_file"]


def is_reference(text: str) -> bool:
    """Return whether `text` has the form FILE.py:NAME."""
    path, colon, _ = text.rpartition(":")
    return bool(colon) and path.endswith(".py")


def load_reference(text: str, what: str) -> Any:
    """Return the object that FILE.py:NAME names; `what` says in an error what it was wanted for.

    Raises:
        ConfigurationError: the file cannot be imported, or has no such name.
    """
    path, _, name = text.rpartition(":")
    module = _module_of(path, what)
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            public = [known for known in vars(module) if not known.startswith("_")]
            known = one_line(", ".join(public), 200) or "nothing"
            raise ConfigurationError(f"{what} {text!r}: there is no {name!r} in {path!r}; its names: {known}") from None
    return value


def load_named(text: str, what: str) -> Any:
    """Return the object that FILE.py:NAME, or `module:name` with an importable module, names.

    Raises:
        ConfigurationError: the module cannot be imported, or has no such name.
    """
    if is_reference(text):
        return load_reference(text, what)
    path, _, name = text.partition(":")
    if not name or not all(part.isidentifier() for part in (*path.split("."), *name.split("."))):
        raise ConfigurationError(f"{what} {text!r} names nothing; give module:name, or FILE.py:NAME")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        value: Any = importlib.import_module(path)
    except (Exception, SystemExit) as error:  # the user's own code
        raise ConfigurationError(f"{what} {text!r}: {path!r} cannot be imported: {_place(error)}") from error
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise ConfigurationError(f"{what} {text!r}: there is no {name!r} in {path!r}") from None
    return value


def call_factory(factory: Callable[[], Any], text: str, what: str) -> Any:
    """Return what a factory of the user's makes; it may be awaitable.

    Raises:
        ConfigurationError: it cannot be called without arguments, or raises.
    """
    try:
        return factory()
    except ConfigurationError:
        raise
    except Exception as error:  # the user's own code
        raise ConfigurationError(f"{what} {text!r}: calling it failed: {_place(error)}") from error


def tools_of_file(path: str) -> list[Any]:
    """Return the tools in a Python file.

    They are the entries of its list `TOOLS`, else the tools and functions named in its `__all__`, else the tools and
    the functions with a docstring that it defines under a name without an underscore.

    Raises:
        ConfigurationError: the file cannot be imported, or there is no tool in it.
    """
    module = _module_of(path, "tools")
    names = vars(module)
    if "TOOLS" in names:
        listed = names["TOOLS"]
        if not isinstance(listed, (list, tuple)):
            raise ConfigurationError(f"tools {path!r}: TOOLS is {one_line(repr(listed), 80)}; make it a list of tools")
        tools = list(listed)
    elif "__all__" in names:
        tools = [entry for name in names["__all__"] for entry in [_listed(module, name, path)] if _is_tool(entry)]
    else:
        tools = [entry for name, entry in names.items() if not name.startswith("_") and _is_offered(entry, module)]
    if not tools:
        raise ConfigurationError(
            f"tools {path!r}: there is no tool in it; define functions with type hints and a docstring, "
            "or list your tools in TOOLS = [...]"
        )
    return tools


def _listed(module: ModuleType, name: Any, path: str) -> Any:
    try:
        return getattr(module, name)
    except (AttributeError, TypeError):
        raise ConfigurationError(f"tools {path!r}: __all__ names {name!r}, which is not there") from None


def _is_tool(entry: Any) -> bool:
    return inspect.isfunction(entry) or _is_tool_object(entry)


def _is_offered(entry: Any, module: ModuleType) -> bool:
    if _is_tool_object(entry):
        return True
    return inspect.isfunction(entry) and entry.__module__ == module.__name__ and bool(inspect.getdoc(entry))


def _is_tool_object(entry: Any) -> bool:
    from graphwright.tools import Tool

    langchain = sys.modules.get("langchain_core.tools.base")
    return isinstance(entry, Tool) or (langchain is not None and isinstance(entry, langchain.BaseTool))


def _module_of(path: str, what: str) -> ModuleType:
    """Import a file once, as `python FILE.py` would: its neighbours can be imported by it."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise ConfigurationError(f"{what}: there is no file {path!r}; give the path of a Python file")
    file = file.resolve()
    name = f"{file.stem}_{sha256(str(file).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{what}: {path!r} is no Python file; its name has to end in .py")
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the user's own code
        del sys.modules[name]
        raise ConfigurationError(f"{what}: {path!r} cannot be imported: {_place(error, file)}") from error
    return module


def _place(error: BaseException, file: Path | None = None) -> str:
    """Return what an error says and, where that is known, in which line of the file."""
    text = f"{type(error).__name__}: {one_line(str(error), 300)}"
    if isinstance(error, SyntaxError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if file is not None and frame.filename == str(file)]
    return f"{text} (line {lines[-1]})" if lines else text
