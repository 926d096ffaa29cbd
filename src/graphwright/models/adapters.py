"""Put LangChain chat models, and other LangChain runnables, behind the model port."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

from graphwright._internal.real_requests import are_forbidden, check_allowed
from graphwright.exceptions import ConfigurationError, ModelError
from graphwright.models.base import ModelCapabilities, ModelRequest
from graphwright.models.providers import PROVIDERS
from graphwright.models.view import streaming_view, view_of
from graphwright.types import ToolSpec

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.runnables import Runnable

__all__ = ["LangChainModel", "RunnableModel", "supports_tools"]

logger = logging.getLogger(__name__)

_MOST_PREPARED = 32
_LEVELS_BELOW = 8
_MAX_TOKENS_NAMES = ("max_tokens", "max_output_tokens", "max_completion_tokens", "num_predict", "max_new_tokens")
_NAME_FIELDS = ("model_name", "model", "model_id", "deployment_name", "azure_deployment")
_URL_FIELDS = ("openai_api_base", "anthropic_api_url", "azure_endpoint", "groq_api_base", "api_base", "endpoint_url")
_MORE_URL_FIELDS = ("base_url", "endpoint")
_PASSED_ON = ("callbacks", "tags", "metadata")
_ONE_MEANS_NONE = frozenset({"langchain_google_genai", "langchain_mistralai"})
"""Packages whose `max_retries` counts attempts."""


class _Adapter:
    """What both kinds have in common: a few prepared bindings, found again by what was asked for."""

    reports_itself = True
    """LangChain tells the callbacks of a call itself."""

    def __init__(self, name: str, capabilities: ModelCapabilities, *, own_retries: bool) -> None:
        self.name = name
        self.capabilities = capabilities
        self.own_retries = own_retries
        """The client makes failed calls again by itself, so nobody else should."""
        self._prepared: dict[Any, tuple[Sequence[ToolSpec], Any]] = {}

    def _prepare(self, request: ModelRequest, make: Callable[[ModelRequest], Any]) -> Any:
        tools = request.tools if request.tool_choice != "none" else ()
        if not tools and request.temperature is None and request.max_tokens is None:
            key: Any = None
        else:
            key = (tuple(map(id, tools)), request.tool_choice, request.temperature, request.max_tokens)
        found = self._prepared.get(key)
        if found is not None:
            return found[1]
        made = make(request)
        if len(self._prepared) >= _MOST_PREPARED:
            del self._prepared[next(iter(self._prepared))]
        # The specs are kept, so that no other object can get the ids in the key.
        self._prepared[key] = (tuple(tools), made)
        return made


class LangChainModel(_Adapter):
    """A LangChain chat model.

    A client that retries by itself (its `max_retries` is not off) is not retried on top by `call_model`.
    """

    def __init__(self, model: BaseChatModel, *, name: str = "", own_retries: bool | None = None) -> None:
        self.model = model
        super().__init__(
            name or _name_of(model),
            ModelCapabilities(tools=supports_tools(model), streaming=_can_stream(model)),
            own_retries=_retries_itself(model) if own_retries is None else own_retries,
        )

    async def complete(self, request: ModelRequest) -> AIMessage:
        """Ask the model and return its whole answer."""
        runnable, kwargs = self._prepare(request, self._bind)
        _check_allowed(self.name, [self.model])
        return _as_message(await runnable.ainvoke(list(request.messages), _config(request), **kwargs), self.name)

    async def stream(self, request: ModelRequest) -> AsyncIterator[AIMessageChunk]:
        """Ask the model and yield its answer in pieces; closing the iterator closes the provider's stream."""
        runnable, kwargs = self._prepare(request, self._bind)
        _check_allowed(self.name, [self.model])
        runnable, opened = _opening(runnable)
        source = runnable.astream(list(request.messages), _config(request), **kwargs)
        ended = False
        try:
            async for chunk in source:
                yield chunk
            ended = True
        finally:
            if not ended:
                await _close(source, *opened)

    def __repr__(self) -> str:
        return f"LangChainModel({self.name!r})"

    def _bind(self, request: ModelRequest) -> tuple[Any, dict[str, Any]]:
        from langchain_core.runnables import RunnableBinding

        view = _sampled(self.model, request)
        if not request.tools or request.tool_choice == "none":
            return view, {}
        bound = _with_tools(view, request, self.name)
        if isinstance(bound, RunnableBinding) and bound.bound is view and not bound.config:
            return view, dict(bound.kwargs)
        return bound, {}


class RunnableModel(_Adapter):
    """Any other LangChain runnable that takes messages: a bound model, a model with fallbacks, a chain.

    A chain that nothing can be bound to gets the messages as they are: it has to know the tools by itself.
    """

    def __init__(self, runnable: Runnable[Any, Any], *, name: str = "") -> None:
        self.runnable = runnable
        self._inner = list(_chat_models(runnable))
        self._is_chain = not self._inner and not supports_tools(runnable)
        super().__init__(
            name or (_name_of(self._inner[0]) if self._inner else runnable.get_name()),
            ModelCapabilities(tools=self._is_chain or supports_tools(runnable), streaming=True),
            own_retries=_has_retry(runnable) or any(map(_retries_itself, self._inner)),
        )

    async def complete(self, request: ModelRequest) -> AIMessage:
        """Ask the runnable and return its whole answer."""
        runnable = self._prepare(request, self._bind)
        _check_allowed(self.name, self._inner)
        return _as_message(await runnable.ainvoke(list(request.messages), _config(request)), self.name)

    async def stream(self, request: ModelRequest) -> AsyncIterator[AIMessageChunk | str]:
        """Ask the runnable and yield its answer in pieces."""
        runnable = self._prepare(request, self._bind)
        _check_allowed(self.name, self._inner)
        source = runnable.astream(list(request.messages), _config(request))
        ended = False
        try:
            async for chunk in source:
                yield chunk if isinstance(chunk, str) else cast("AIMessageChunk", _as_message(chunk, self.name))
            ended = True
        finally:
            if not ended:
                await _close(source)

    def __repr__(self) -> str:
        return f"RunnableModel({self.name!r})"

    def _bind(self, request: ModelRequest) -> Any:
        runnable = _rebuilt(self.runnable, lambda model: _sampled(model, request))
        if not request.tools or request.tool_choice == "none" or self._is_chain:
            return runnable
        return _with_tools(runnable, request, self.name)


def supports_tools(model: Any) -> bool:
    """Return whether a LangChain chat model or runnable takes tool definitions."""
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.runnables import RunnableBinding, RunnableWithFallbacks

    if isinstance(model, BaseChatModel):
        return getattr(type(model), "bind_tools", None) is not BaseChatModel.bind_tools
    if isinstance(model, RunnableBinding):
        return supports_tools(model.bound)
    if isinstance(model, RunnableWithFallbacks):
        return all(map(supports_tools, model.runnables))
    return callable(getattr(model, "bind_tools", None))


def _with_tools(runnable: Any, request: ModelRequest, name: str) -> Any:
    if not supports_tools(runnable):
        raise ConfigurationError(
            f"model {name!r} takes no tools ({type(runnable).__name__} does not implement bind_tools); "
            "use a model that does, or leave the tools out"
        )
    options: dict[str, Any] = {}
    if request.tool_choice != "auto":
        options["tool_choice"] = "any" if request.tool_choice == "required" else request.tool_choice
    return _rebuilt(runnable, lambda model: model.bind_tools([_definition(spec) for spec in request.tools], **options))


def _definition(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            # Some classes rewrite the schema in place.
            "parameters": deepcopy(spec.parameters),
        },
    }


def _rebuilt(runnable: Any, change: Callable[[Any], Any]) -> Any:
    """Return the runnable with each chat model that gets its messages replaced by what `change` makes of it."""
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.runnables import RunnableBinding, RunnableWithFallbacks

    if isinstance(runnable, BaseChatModel):
        return change(runnable)
    if isinstance(runnable, RunnableBinding):
        return runnable.model_copy(update={"bound": _rebuilt(runnable.bound, change)})
    if isinstance(runnable, RunnableWithFallbacks):
        first, *others = (_rebuilt(one, change) for one in runnable.runnables)
        return runnable.model_copy(update={"runnable": first, "fallbacks": others})
    return change(runnable) if callable(getattr(runnable, "bind_tools", None)) else runnable


def _sampled(model: Any, request: ModelRequest) -> Any:
    from langchain_core.language_models.chat_models import BaseChatModel

    if not isinstance(model, BaseChatModel):
        return model
    if not issubclass(type(model), BaseChatModel):
        return model  # a stand-in that only claims to be one
    updates: dict[str, Any] = {}
    fields = type(model).model_fields
    if request.temperature is not None:
        updates |= _update("temperature", request.temperature, ("temperature",), fields)
    if request.max_tokens is not None:
        updates |= _update("max_tokens", request.max_tokens, _MAX_TOKENS_NAMES, fields)
    return view_of(model, updates)


def _update(what: str, value: Any, names: Sequence[str], fields: Mapping[str, Any]) -> dict[str, Any]:
    for name in names:
        if name in fields:
            return {name: value}
    logger.warning("%s=%r is ignored: the model's class has no such setting", what, value)
    return {}


def _config(request: ModelRequest) -> Any:
    given = request.config
    if not given:
        return None
    config = {key: given[key] for key in _PASSED_ON if given.get(key)}
    settings = given.get("configurable")
    if isinstance(settings, Mapping):
        kept = {key: value for key, value in settings.items() if key != "graphwright"}
        if kept:
            config["configurable"] = kept
    return config


def _as_message(value: Any, name: str) -> AIMessage:
    from langchain_core.messages import AIMessage

    if isinstance(value, AIMessage):
        return value
    if isinstance(value, str):
        return AIMessage(content=value)
    raise ModelError(f"model {name!r} answered with {_short(value)}, which is no message and no text")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _opening(runnable: Any) -> tuple[Any, list[Any]]:
    from langchain_core.language_models.chat_models import BaseChatModel

    return streaming_view(runnable) if isinstance(runnable, BaseChatModel) else (runnable, [])


async def _close(*sources: Any) -> None:
    for source in sources:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()
    # Generators inside the client are dropped and not closed; the loop closes them, one level a turn.
    for _ in range(_LEVELS_BELOW):
        await asyncio.sleep(0)


def _name_of(model: Any) -> str:
    for field in _NAME_FIELDS:
        value = getattr(model, field, None)
        if isinstance(value, str) and value:
            return value.removeprefix("models/")
    return type(model).__name__


def _can_stream(model: Any) -> bool:
    from langchain_core.language_models.chat_models import BaseChatModel

    own = type(model)
    if getattr(model, "disable_streaming", False) is True:
        return False
    return (
        getattr(own, "_astream", None) is not BaseChatModel._astream
        or getattr(own, "_stream", None) is not BaseChatModel._stream
    )


def _retries_itself(model: Any) -> bool:
    retries = getattr(model, "max_retries", 0)
    if retries is None:
        return True  # the client's own default, which is not 0 in any of them
    limit = 1 if _package_of(model) in _ONE_MEANS_NONE else 0
    return isinstance(retries, int) and retries > limit


def _has_retry(runnable: Any) -> bool:
    if any(cls.__name__ == "RunnableRetry" for cls in type(runnable).__mro__):
        return True
    return any(map(_has_retry, _parts(runnable)))


def _chat_models(runnable: Any) -> Iterator[Any]:
    from langchain_core.language_models.chat_models import BaseChatModel

    if isinstance(runnable, BaseChatModel):
        yield runnable
    else:
        for part in _parts(runnable):
            yield from _chat_models(part)


def _parts(runnable: Any) -> list[Any]:
    from langchain_core.runnables import Runnable, RunnableBinding, RunnableSequence, RunnableWithFallbacks

    if isinstance(runnable, RunnableBinding):
        return [runnable.bound]
    if isinstance(runnable, RunnableWithFallbacks):
        return list(runnable.runnables)
    if isinstance(runnable, RunnableSequence):
        return [step for step in runnable.steps if isinstance(step, Runnable)]
    return []


def _package_of(model: Any) -> str:
    packages = {provider.package for provider in PROVIDERS}
    for cls in type(model).__mro__:
        package = cls.__module__.partition(".")[0]
        if package in packages:
            return package
    return ""


def _check_allowed(name: str, models: Sequence[Any]) -> None:
    if not are_forbidden():
        return
    for model in models:
        package = _package_of(model)
        if package:
            check_allowed(name, base_url=_url_of(model, package))


def _url_of(model: Any, package: str) -> str | None:
    client = getattr(model, "root_async_client", None)
    found = getattr(client, "base_url", None) if client is not None else None
    if found:
        return str(found)
    for field in (*_URL_FIELDS, *_MORE_URL_FIELDS):
        value = getattr(model, field, None)
        if isinstance(value, str) and value:
            return value
    return "http://localhost:11434" if package == "langchain_ollama" else None
