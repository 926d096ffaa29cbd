"""Language models by the name of their provider: thin over the model registry, and nothing is imported until used."""

from __future__ import annotations

import inspect
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from graphwright._internal.sync import run_sync
from graphwright.exceptions import ConfigurationError
from graphwright.messages import as_messages, text_of
from graphwright.models import as_model, call_model
from graphwright.models.base import ChatModel, ModelRequest
from graphwright.orchestrator.interfaces import ILanguageModel

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

__all__ = [
    "AnthropicLanguageModel",
    "BedrockLanguageModel",
    "DeepSeekLanguageModel",
    "GeminiLanguageModel",
    "LanguageModel",
    "OpenAILanguageModel",
    "as_language_model",
]

logger = logging.getLogger(__name__)

_CLAUDE_ADAPTIVE = re.compile(
    r"opus-4-(?:[7-9]|[1-9]\d)(?!\d)|(?:opus|sonnet|haiku|fable)-(?:[5-9]|[1-9]\d)(?!\d)|mythos"
)
"""Claude models that decide by themselves how long they think; they refuse a budget and every sampling setting."""

_REFUSES_TEMPERATURE = {
    "openai": re.compile(r"(?:^|[:/])(?:o\d|gpt-(?:[5-9]|[1-9]\d)(?!\d))"),
    "anthropic": _CLAUDE_ADAPTIVE,
    "bedrock": re.compile(rf"{_CLAUDE_ADAPTIVE.pattern}|deepseek\.r\d"),
    "deepseek": re.compile(r"reasoner|\br\d"),
}
"""Provider -> names of models that answer a request with a temperature with an error."""

_SHOWS_THINKING = {
    "anthropic": re.compile(r"claude-3-7|(?:opus|sonnet|haiku)-(?:[4-9]|[1-9]\d)|fable|mythos"),
    "google": re.compile(r"-thinking|thinking-exp|gemini-2\.5"),
    "deepseek": _REFUSES_TEMPERATURE["deepseek"],
}
"""Provider -> names of models whose thinking can be asked for, and shown."""

_GEMINI_BUDGET = 8192
_LEAST_CLAUDE_BUDGET = 1024


class LanguageModel(ILanguageModel):
    """A model of one provider. Its client is made when it is first used, so the package is only needed then."""

    provider: ClassVar[str]

    def __init__(
        self, api_key: str | None, model_name: str, temperature: float | None, options: dict[str, Any]
    ) -> None:
        if not isinstance(model_name, str) or not model_name.strip():
            raise ConfigurationError(f"model_name is {model_name!r}; give the name of a model of {self.provider}")
        self.model_name = model_name
        """The name as the provider knows it."""
        sent = None if _matches(_REFUSES_TEMPERATURE, self.provider, model_name) else temperature
        settings = {"api_key": api_key, "temperature": sent, **options}
        self._settings = {key: value for key, value in settings.items() if value is not None}
        self._made: ChatModel | None = None

    @property
    def name(self) -> str:
        """The model string, such as `openai:gpt-4o-mini`."""
        return f"{self.provider}:{self.model_name}"

    @property
    def chat_model(self) -> ChatModel:
        """The model behind the port that the engine asks.

        Raises:
            MissingExtraError: the provider's package is not installed.
            ConfigurationError: a key is missing, or a setting does not fit.
        """
        if self._made is None:
            self._made = as_model(self.name, **self._settings)
        return self._made

    @property
    def model(self) -> Any:
        """The LangChain chat model. Raises what `chat_model` does."""
        return getattr(self.chat_model, "model", self.chat_model)

    @property
    def supports_thinking(self) -> bool:
        """Whether this model's thinking can be asked for, and shown."""
        return _matches(_SHOWS_THINKING, self.provider, self.model_name)

    def invoke(self, prompt: str | Sequence[Any]) -> AIMessage:
        """Answer a prompt, or a list of messages, with the whole message. Failed calls are made again.

        Raises:
            ModelError: there is no answer.
        """
        request = ModelRequest(messages=as_messages(prompt))
        return run_sync(call_model(self.chat_model, request)).message

    def predict(self, prompt: str | Sequence[Any]) -> str:
        """Answer a prompt, or a list of messages, with text. Raises what `invoke` does."""
        return text_of(self.invoke(prompt))

    def stream_response(self, prompt: str | Sequence[Any]) -> Iterator[str]:
        """Yield the text of the answer while it is written."""
        for chunk in self.model.stream(as_messages(prompt)):
            text = text_of(chunk)
            if text:
                yield text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r})"


class OpenAILanguageModel(LanguageModel):
    """A model of OpenAI, or of a server that speaks its protocol at `base_url`."""

    provider = "openai"

    def __init__(
        self,
        api_key: str | None = None,
        model_name: str = "gpt-4o-mini",
        temperature: float | None = 0.7,
        *,
        base_url: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        **options: Any,
    ) -> None:
        """Further options go to `ChatOpenAI`. `timeout` is in seconds. Failed calls are retried by the caller of the
        model; with `max_retries` by the client instead. A temperature is left out for models that refuse it."""
        given = {"base_url": base_url, "timeout": timeout, "max_retries": max_retries}
        super().__init__(api_key, model_name, temperature, {**given, **options})


class AnthropicLanguageModel(LanguageModel):
    """A Claude model."""

    provider = "anthropic"

    def __init__(
        self,
        api_key: str | None = None,
        model_name: str = "claude-haiku-4-5",
        temperature: float | None = 0.7,
        max_tokens: int = 4096,
        thinking_budget: int | None = None,
        *,
        base_url: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        **options: Any,
    ) -> None:
        """Further options go to `ChatAnthropic`; `timeout`, `max_retries` and `temperature` as for OpenAI.

        `thinking_budget` is the number of tokens to think with, 1024 or more; they come on top of `max_tokens`, and the
        temperature is left out. A model that decides by itself how long it thinks is only told to show it.
        """
        given: dict[str, Any] = {"base_url": base_url, "timeout": timeout, "max_retries": max_retries}
        if thinking_budget and _can_think(self.provider, model_name, thinking_budget):
            temperature = None
            if _CLAUDE_ADAPTIVE.search(model_name.lower()):
                given["thinking"] = {"type": "adaptive", "display": "summarized"}
            else:
                given["thinking"] = {"type": "enabled", "budget_tokens": thinking_budget}
                max_tokens = max_tokens + thinking_budget
        super().__init__(api_key, model_name, temperature, {**given, "max_tokens": max_tokens, **options})


class GeminiLanguageModel(LanguageModel):
    """A Gemini model."""

    provider = "google"

    def __init__(
        self,
        api_key: str | None = None,
        model_name: str = "gemini-3-flash-preview",
        temperature: float | None = 0.7,
        thinking_budget: int | None = None,
        *,
        base_url: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        **options: Any,
    ) -> None:
        """Further options go to `ChatGoogleGenerativeAI`, where `max_retries` counts attempts.

        A model that shows its thinking does, with `thinking_budget` tokens (8192 unless given, 0 for none).
        """
        given: dict[str, Any] = {"base_url": base_url, "timeout": timeout, "max_retries": max_retries}
        if _matches(_SHOWS_THINKING, self.provider, model_name):
            budget = _GEMINI_BUDGET if thinking_budget is None else thinking_budget
            given |= {"thinking_budget": budget, "include_thoughts": budget != 0}
        elif thinking_budget is not None:
            logger.warning("thinking_budget=%r is ignored: %r takes none", thinking_budget, model_name)
        super().__init__(api_key, model_name, temperature, {**given, **options})


class DeepSeekLanguageModel(LanguageModel):
    """A DeepSeek model."""

    provider = "deepseek"

    def __init__(
        self,
        api_key: str | None = None,
        model_name: str = "deepseek-chat",
        temperature: float | None = 0.7,
        *,
        base_url: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        **options: Any,
    ) -> None:
        """Further options go to `ChatDeepSeek`; `timeout`, `max_retries` and `temperature` as for OpenAI."""
        given = {"base_url": base_url, "timeout": timeout, "max_retries": max_retries}
        super().__init__(api_key, model_name, temperature, {**given, **options})


class BedrockLanguageModel(LanguageModel):
    """A model on Amazon Bedrock."""

    provider = "bedrock"

    def __init__(
        self,
        api_key: str | None = None,
        region_name: str | None = None,
        model_name: str = "amazon.nova-micro-v1:0",
        temperature: float | None = 0.7,
        *,
        region: str | None = None,
        base_url: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        **options: Any,
    ) -> None:
        """`api_key` is a Bedrock API key, given to the client and not written into the environment; without one the
        usual AWS credentials are used. `region` is another word for `region_name`. Further options go to
        `ChatBedrockConverse`; `timeout`, `max_retries` and `temperature` as for OpenAI."""
        if region is not None and region_name is not None and region != region_name:
            raise ConfigurationError(f"region is {region!r} and region_name {region_name!r}; give one of them")
        given = {"region": region_name or region, "base_url": base_url, "timeout": timeout, "max_retries": max_retries}
        super().__init__(api_key, model_name, temperature, {**given, **options})


def _matches(table: Mapping[str, re.Pattern[str]], provider: str, model_name: Any) -> bool:
    pattern = table.get(provider)
    return pattern is not None and pattern.search(str(model_name).lower()) is not None


def _can_think(provider: str, model_name: str, budget: int) -> bool:
    if not _matches(_SHOWS_THINKING, provider, model_name):
        logger.warning("thinking_budget=%r is ignored: %r does not think", budget, model_name)
        return False
    if budget < _LEAST_CLAUDE_BUDGET:
        raise ConfigurationError(f"thinking_budget is {budget!r}; give {_LEAST_CLAUDE_BUDGET} tokens or more")
    return True


def as_language_model(value: Any) -> Any:
    """Return what `as_model` takes, made of a language model, a string, a chat model, or what looks like one.

    A language model is any object whose `model` is a chat model. What looks like one has `ainvoke`, and `bind_tools`
    and `astream` where it takes tools and streams.

    Raises:
        ConfigurationError: it is none of these; or as `LanguageModel.chat_model` raises.
    """
    found = _usable(value)
    if found is None and not isinstance(value, type):
        inner = getattr(value, "model", None)
        found = _usable(inner) if not isinstance(inner, str) else None
        found = found or _duck(inner) or _duck(value)
    if found is None:
        raise ConfigurationError(
            f"{_short(value)} is no language model; give OpenAILanguageModel(...) or another one, a string such "
            "as 'openai:gpt-4o-mini', or a chat model"
        )
    return found


def _usable(value: Any) -> Any:
    """Return a value that surely is a model, else `None`."""
    if isinstance(value, type) or value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, LanguageModel):
        return value.chat_model
    if _really_has(value, "complete") and isinstance(value, ChatModel):
        return value
    # Whoever holds a LangChain object has imported LangChain. A mock with a `spec` only says that it is one.
    runnables = sys.modules.get("langchain_core.runnables.base")
    if runnables is not None and issubclass(type(value), runnables.Runnable):
        return value
    return _duck(value) if _really_has(value, "bind_tools") or _really_has(value, "ainvoke") else None


def _duck(value: Any) -> Any:
    if value is None or isinstance(value, (str, type)) or not callable(getattr(value, "ainvoke", None)):
        return None
    from graphwright.orchestrator.duck_model import DuckModel

    return DuckModel(value)


def _really_has(value: Any, name: str) -> bool:
    """Return whether an attribute is there, and not made up when it is asked for."""
    return inspect.getattr_static(value, name, None) is not None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
