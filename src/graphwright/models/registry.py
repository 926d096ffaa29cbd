"""Make a model out of what people have at hand: a string, a LangChain object, or a model of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from graphwright._internal.optional import load
from graphwright.exceptions import ConfigurationError, MissingExtraError
from graphwright.models.base import ChatModel
from graphwright.models.providers import ModelString, Provider, is_available, missing_needs, parse_model_string

__all__ = ["as_model"]

_NO_KEY = "no-key"
"""Sent where a server of your own asks for some key."""


def as_model(model: Any, **options: Any) -> ChatModel:
    """Return the model that `model` means.

    A string is `provider:name`, such as `"openai:gpt-5-mini"`, or `"local"`; the options go to the provider's class
    (`api_key`, `base_url`, `timeout`, `temperature`, ...). A server that speaks OpenAI's protocol is
    `as_model("openai:name", base_url="http://127.0.0.1:8000/v1")` or `"openai_compatible:name@http://127.0.0.1:8000/v1"`;
    the latter never sends `OPENAI_API_KEY`. Failed calls of a model made from a string are retried by `call_model`
    and not by the client. A LangChain chat model or runnable is wrapped; its settings, retries among them, stay as
    they are. One that takes no tools is told of them in words. A `ChatModel` is returned as it is.

    Raises:
        UnknownModelError: the string names no known provider.
        MissingExtraError: the provider's package is not installed.
        ConfigurationError: a key is missing, an option does not fit, or `model` is none of these.
    """
    if isinstance(model, str):
        return _build(parse_model_string(model), model.strip(), options)
    if options:
        raise ConfigurationError(
            f"the options {sorted(options)} need a model string; set them on {_short_of(model)} itself"
        )
    if not isinstance(model, type):
        if isinstance(model, ChatModel):
            return model
        wrapped = _wrapped(model)
        if wrapped is not None:
            return wrapped
    raise ConfigurationError(
        f"{_short_of(model)} is no model; give a string such as 'openai:gpt-5-mini' or 'local', a LangChain chat model "
        "or runnable, or an object with name, capabilities and complete()"
    )


def _wrapped(model: Any) -> ChatModel | None:
    # Whoever holds a LangChain object has imported LangChain.
    runnables = sys.modules.get("langchain_core.runnables.base")
    if runnables is None or not isinstance(model, runnables.Runnable):
        return None
    from langchain_core.language_models.chat_models import BaseChatModel

    from graphwright.models.adapters import LangChainModel, RunnableModel

    adapted = LangChainModel(model) if isinstance(model, BaseChatModel) else RunnableModel(model)
    return adapted if adapted.capabilities.tools else _in_words(adapted)


def _in_words(model: ChatModel) -> ChatModel:
    from graphwright.models.prompted import tools_in_words

    return tools_in_words(model)


def _build(parsed: ModelString, string: str, options: Mapping[str, Any]) -> ChatModel:
    provider = parsed.provider
    if provider is None:
        from graphwright.models.local import build_local

        return build_local(parsed.name, **options)
    given = dict(options)
    if parsed.base_url is not None:
        given["base_url"] = parsed.base_url
    if not is_available(provider):
        raise MissingExtraError(f"model {string!r}", extra=provider.extra, package=provider.distribution)
    missing = missing_needs(provider, given)
    if missing:
        raise ConfigurationError(f"model {string!r} cannot be used: {'; '.join(map(str, missing))}")
    client = _client(provider, parsed.name, string, given)

    from graphwright.models.adapters import LangChainModel

    own_retries = None if "max_retries" in options else False
    return LangChainModel(client, name=f"{provider.name}:{parsed.name}", own_retries=own_retries)


def _client(provider: Provider, name: str, string: str, given: Mapping[str, Any]) -> Any:
    settings = {**provider.defaults, **_with_key(provider, given)}
    settings = {provider.renamed.get(key, key): value for key, value in settings.items()}
    settings[provider.model_option] = name
    try:
        make = load(provider.path)
    except ImportError as error:
        raise MissingExtraError(f"model {string!r}", extra=provider.extra, package=provider.distribution) from error
    try:
        return make(**settings)
    except ImportError as error:
        raise MissingExtraError(f"model {string!r}", extra=provider.extra, package=str(error.name or error)) from error
    except Exception as error:  # whatever the provider's class refuses, as one line
        raise ConfigurationError(f"model {string!r} cannot be built: {_short(error)}") from error


def _with_key(provider: Provider, given: Mapping[str, Any]) -> dict[str, Any]:
    settings = dict(given)
    if provider.name == "openai_compatible":
        settings.setdefault("base_url", os.environ.get("OPENAI_COMPATIBLE_BASE_URL"))
        settings.setdefault("api_key", os.environ.get("OPENAI_COMPATIBLE_API_KEY") or _NO_KEY)
    elif provider.name == "openai" and not _has_key(settings):
        # The needs are met, so there is a URL: a server of your own, which asks for no key.
        settings["api_key"] = _NO_KEY
    return settings


def _has_key(settings: Mapping[str, Any]) -> bool:
    return bool(settings.get("api_key") or settings.get("openai_api_key") or os.environ.get("OPENAI_API_KEY"))


def _short(error: Exception) -> str:
    # A validation error prints the values that it was given, keys among them, so only its findings are passed on.
    findings = getattr(error, "errors", None)
    if callable(findings):
        return "; ".join(
            f"{'.'.join(map(str, finding['loc'])) or 'settings'}: {finding['msg']}" for finding in findings()
        )
    return str(error).split("\n", 1)[0] or type(error).__name__


def _short_of(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
