"""Skills: folders with instructions, and tools if they need any, that a bot loads when a goal asks for them."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import logging
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from graphwright.exceptions import ConfigurationError
from graphwright.orchestrator.front_matter import read_front_matter
from graphwright.tools import Tool, ToolSet, as_tool
from graphwright.types import ToolSpec

__all__ = [
    "LOAD_SKILL_NAME",
    "Skill",
    "load_skill_spec",
    "load_skills",
    "merge_tools",
    "skill_body",
    "skills_index",
    "skills_text",
]

logger = logging.getLogger(__name__)

LOAD_SKILL_NAME = "load_skill"

_SKILL_FILE = "SKILL.md"
_TOOLS_FILE = "tools.py"
_LONGEST_DESCRIPTION = 500


@dataclass(frozen=True)
class Skill:
    """Instructions for one kind of work."""

    name: str

    instructions: str

    description: str = ""
    """When to use it, in a sentence; what the model chooses by."""

    tools: list[Any] = field(default_factory=list)
    """Functions and tools that the instructions speak of. A bot offers them once the skill was loaded."""

    path: Path | None = None
    """The folder it came from."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ConfigurationError(f"{self.name!r} is no name of a skill; give it one to load it by")
        object.__setattr__(self, "name", _line(self.name))
        object.__setattr__(self, "tools", list(self.tools))

    @classmethod
    def from_dir(cls, path: str | Path, *, load_tools: bool = True) -> Self:
        """Read a skill from a folder with a `SKILL.md`.

        The file's settings may give `name` (else the folder's) and `description`. A `tools.py` in the folder **is
        run**, as an import would, so read a folder that is not your own with `load_tools=False`. Its tools are what it
        lists in `TOOLS`; without that, every tool object in it and every tool class it defines, made without arguments.

        Raises:
            ConfigurationError: there is no `SKILL.md`, or something in the folder cannot be used.
        """
        folder = Path(path)
        file = folder / _SKILL_FILE
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{str(file)!r} cannot be read: {error}") from error
        settings, body = read_front_matter(text)
        name, description = settings.get("name") or folder.resolve().name, settings.get("description") or ""
        for key, value in (("name", name), ("description", description)):
            if not isinstance(value, str):
                raise ConfigurationError(f"{key} is {value!r} in {str(file)!r}; give it as text")
        tools = _tools_in(folder / _TOOLS_FILE) if load_tools and (folder / _TOOLS_FILE).is_file() else []
        return cls(name=name, instructions=body.strip(), description=description, tools=tools, path=folder)


def load_skills(directory: str | Path, *, load_tools: bool = True) -> list[Skill]:
    """Return the skills in the sub-folders of a folder, by folder name. One that is broken is logged and left out.

    A `tools.py` in them is run, as `Skill.from_dir` says.

    Raises:
        ConfigurationError: there is no such folder.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise ConfigurationError(f"there is no folder {str(folder)!r} to load skills from; make it, or leave it out")
    found: list[Skill] = []
    for entry in sorted(folder.iterdir()):
        if not (entry / _SKILL_FILE).is_file():
            continue
        try:
            skill = Skill.from_dir(entry, load_tools=load_tools)
        except ConfigurationError as error:
            logger.warning("the skill in %r is left out: %s", entry.name, error)
            continue
        if any(skill.name == other.name for other in found):
            logger.warning("the skill in %r is left out: there is a skill named %r already", entry.name, skill.name)
            continue
        found.append(skill)
    return found


def skills_index(skills: Sequence[Skill]) -> str:
    """Return the part of the prompt that names the skills and says how to load one; empty without skills."""
    if not skills:
        return ""
    lines = [f"- {skill.name}: {_line(skill.description)[:_LONGEST_DESCRIPTION]}".rstrip(": ") for skill in skills]
    return "\n".join(
        [
            f"Skills. When one of them fits what you are about to do, call {LOAD_SKILL_NAME} with its name first and "
            "follow its instructions; its tools can be called after that.",
            *lines,
        ]
    )


def skills_text(skills: Sequence[Skill]) -> str:
    """Return every skill in full, for a bot that loads none on demand; empty without skills."""
    return "\n\n".join(f"Skill {skill.name}\n\n{_body(skill)}" for skill in skills)


def load_skill_spec(skills: Sequence[Skill]) -> ToolSpec:
    """Return the tool by which the model loads one of these skills."""
    name = {"type": "string", "enum": [skill.name for skill in skills], "description": "the name of the skill"}
    return ToolSpec(
        name=LOAD_SKILL_NAME,
        description="Read the instructions of a skill, and make its tools available.",
        parameters={
            "type": "object",
            "properties": {"name": name},
            "required": ["name"],
            "additionalProperties": False,
        },
    )


def skill_body(skills: Sequence[Skill], name: Any) -> str:
    """Return the instructions of a skill as the model reads them; of an unknown one, which ones there are."""
    skill = next((skill for skill in skills if skill.name == name), None)
    if skill is None:
        return (
            f"There is no skill named {name!r}. The skills are: {', '.join(skill.name for skill in skills) or 'none'}."
        )
    return _body(skill)


def merge_tools(
    explicit: Iterable[Any] | ToolSet | None,
    skills: Sequence[Skill] = (),
    loaded: Collection[str] | None = None,
    *,
    reserved: Collection[str] = (),
    make: Callable[[Any], Tool] = as_tool,
) -> ToolSet:
    """Return the tools that a model is offered: those given, and those of the skills whose names are in `loaded`.

    `loaded=None` means all of them. A given tool wins over a skill's tool of the same name. `make` turns an entry into
    a tool. All skills are checked, whether they are loaded or not, so a set that was made once can be made again.

    Raises:
        ConfigurationError: two given tools, or the tools of two skills, have one name; a name is in `reserved`; or an
            entry is no tool.
    """
    given = ToolSet([make(entry) for entry in explicit or ()])
    found: dict[str, Tool] = {}
    owners: dict[str, list[str]] = {}
    for skill in skills:
        for tool in map(make, skill.tools):
            if tool.name in given:
                continue
            if found.setdefault(tool.name, tool) != tool:
                raise ConfigurationError(
                    f"the skills {owners[tool.name][0]!r} and {skill.name!r} both have a tool named {tool.name!r}; "
                    "rename one, or give the one that is meant in tools"
                )
            owners.setdefault(tool.name, []).append(skill.name)
    taken = [name for name in (*given.names, *found) if name in reserved]
    if taken:
        raise ConfigurationError(f"a tool has the name {taken[0]!r}, which the bot needs for itself; rename it")
    offered = [tool for name, tool in found.items() if loaded is None or any(owner in loaded for owner in owners[name])]
    return ToolSet([*given, *offered])


def _body(skill: Skill) -> str:
    if skill.path is None:
        return skill.instructions
    return f"{skill.instructions}\n\n(Files that these instructions speak of are in {skill.path}.)"


def _tools_in(file: Path) -> list[Any]:
    module = _run(file)
    found = getattr(module, "TOOLS", None)
    if found is None:
        found = [value for name, value in vars(module).items() if name[0] != "_" and _is_own_tool(value, module)]
    if not isinstance(found, (list, tuple)):
        raise ConfigurationError(f"TOOLS in {str(file)!r} is {found!r}; make it a list of functions and tools")
    tools = [_instance(entry, file) if isinstance(entry, type) else entry for entry in found]
    for entry in tools:
        as_tool(entry)
    return tools


def _run(file: Path) -> ModuleType:
    digest = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]
    name = f"graphwright_skill_{re.sub(r'[^0-9a-z]+', '_', file.parent.name.lower())}_{digest}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{str(file)!r} cannot be run")
    module = importlib.util.module_from_spec(spec)
    # Classes look their module up while they are made.
    earlier, sys.modules[name] = sys.modules.get(name), module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # it is foreign code
        if earlier is None:
            del sys.modules[name]
        else:
            sys.modules[name] = earlier
        raise ConfigurationError(f"{str(file)!r} cannot be run: {type(error).__name__}: {error}") from error
    return module


def _is_own_tool(value: Any, module: ModuleType) -> bool:
    """Return whether a value of a module is a tool it made, or a class of tools it defined."""
    kinds = tuple(_tool_classes())
    if isinstance(value, type):
        return issubclass(value, kinds) and value.__module__ == module.__name__ and not inspect.isabstract(value)
    return isinstance(value, kinds)


def _tool_classes() -> Iterator[type]:
    yield Tool
    # Where the module was never loaded, nobody can have made a class of it.
    langchain = sys.modules.get("langchain_core.tools.base")
    if langchain is not None:
        yield langchain.BaseTool


def _instance(kind: type, file: Path) -> Any:
    try:
        return kind()
    except Exception as error:  # a constructor is foreign code
        raise ConfigurationError(
            f"{kind.__name__} in {str(file)!r} cannot be made without arguments: {error}; make one in TOOLS"
        ) from error


def _line(text: str) -> str:
    return " ".join(text.split())
