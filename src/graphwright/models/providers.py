"""The providers that a model string can name, one row each, and what each needs to be used."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from graphwright._internal.optional import is_installed
from graphwright.exceptions import UnknownModelError

__all__ = [
    "LOCAL",
    "PROVIDERS",
    "ModelString",
    "Need",
    "Provider",
    "is_available",
    "missing_needs",
    "parse_model_string",
]

LOCAL = "local"


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """Something that must be given, by an environment variable or by an option."""

    variables: tuple[str, ...]
    """Any one of them is enough."""

    options: tuple[str, ...]
    """Any one of them is enough as well."""

    def is_met(self, options: Mapping[str, Any]) -> bool:
        """Return whether an option or a variable gives it."""
        return any(options.get(name) for name in self.options) or any(os.environ.get(name) for name in self.variables)

    def __str__(self) -> str:
        return f"{' or '.join(self.variables)} is not set; set it in the environment, or pass {self.options[0]}="


@dataclass(frozen=True, kw_only=True, slots=True)
class Provider:
    """One row of the table."""

    name: str

    path: str
    """The LangChain class, as `package.module:name`."""

    extra: str

    distribution: str
    """What pip installs."""

    aliases: tuple[str, ...] = ()

    needs: tuple[Need, ...] = ()

    model_option: str = "model"

    renamed: Mapping[str, str] = field(default_factory=dict)
    """Our name of an option -> the name that the class takes."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Options that are set unless given: the client's own retries are off, and usage is asked for."""

    free_with: tuple[str, ...] = ()
    """Options, or variables, with which the needs do not apply."""

    @property
    def package(self) -> str:
        """The top-level package of the class."""
        return self.path.partition(":")[0].partition(".")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelString:
    """A model string, taken apart."""

    provider: Provider | None
    """`None` for a local model."""

    name: str

    base_url: str | None = None


def _key(variable: str, *more: str, options: tuple[str, ...] = ("api_key",)) -> Need:
    return Need(variables=(variable, *more), options=options)


_OPENAI = "langchain_openai:ChatOpenAI"
_OPENAI_DEFAULTS = {"max_retries": 0, "stream_usage": True}

PROVIDERS: tuple[Provider, ...] = (
    Provider(
        name="openai",
        path=_OPENAI,
        extra="openai",
        distribution="langchain-openai",
        needs=(_key("OPENAI_API_KEY", options=("api_key", "openai_api_key")),),
        defaults=_OPENAI_DEFAULTS,
        free_with=("base_url", "openai_api_base", "OPENAI_BASE_URL", "OPENAI_API_BASE"),
    ),
    Provider(
        name="openai_compatible",
        path=_OPENAI,
        extra="openai",
        distribution="langchain-openai",
        aliases=("openai-compatible", "compatible"),
        needs=(Need(variables=("OPENAI_COMPATIBLE_BASE_URL",), options=("base_url",)),),
        defaults=_OPENAI_DEFAULTS,
    ),
    Provider(
        name="anthropic",
        path="langchain_anthropic:ChatAnthropic",
        extra="anthropic",
        distribution="langchain-anthropic",
        aliases=("claude",),
        needs=(_key("ANTHROPIC_API_KEY", options=("api_key", "anthropic_api_key")),),
        defaults={"max_retries": 0},
    ),
    Provider(
        name="google",
        path="langchain_google_genai:ChatGoogleGenerativeAI",
        extra="google",
        distribution="langchain-google-genai",
        aliases=("google_genai", "gemini"),
        needs=(_key("GOOGLE_API_KEY", "GEMINI_API_KEY", options=("api_key", "google_api_key", "credentials")),),
        # For this class the number counts attempts.
        defaults={"max_retries": 1},
        free_with=("vertexai", "GOOGLE_GENAI_USE_VERTEXAI"),
    ),
    Provider(
        name="azure",
        path="langchain_openai:AzureChatOpenAI",
        extra="azure",
        distribution="langchain-openai",
        aliases=("azure_openai", "azure-openai"),
        needs=(
            _key(
                "AZURE_OPENAI_API_KEY",
                "AZURE_OPENAI_AD_TOKEN",
                options=("api_key", "openai_api_key", "azure_ad_token", "azure_ad_token_provider"),
            ),
            Need(variables=("AZURE_OPENAI_ENDPOINT",), options=("azure_endpoint", "base_url")),
            Need(variables=("OPENAI_API_VERSION",), options=("api_version", "openai_api_version")),
        ),
        model_option="azure_deployment",
        renamed={"base_url": "azure_endpoint"},
        defaults=_OPENAI_DEFAULTS,
    ),
    Provider(
        name="bedrock",
        path="langchain_aws:ChatBedrockConverse",
        extra="bedrock",
        distribution="langchain-aws",
        aliases=("aws", "bedrock_converse"),
        renamed={"region": "region_name", "base_url": "endpoint_url"},
        defaults={"max_retries": 0},
    ),
    Provider(
        name="ollama",
        path="langchain_ollama:ChatOllama",
        extra="ollama",
        distribution="langchain-ollama",
        renamed={"max_tokens": "num_predict"},
    ),
    Provider(
        name="deepseek",
        path="langchain_deepseek:ChatDeepSeek",
        extra="deepseek",
        distribution="langchain-deepseek",
        needs=(_key("DEEPSEEK_API_KEY"),),
        renamed={"base_url": "api_base"},
        defaults=_OPENAI_DEFAULTS,
    ),
    Provider(
        name="mistral",
        path="langchain_mistralai:ChatMistralAI",
        extra="mistral",
        distribution="langchain-mistralai",
        aliases=("mistralai",),
        needs=(_key("MISTRAL_API_KEY", options=("api_key", "mistral_api_key")),),
        # For this class the number counts attempts.
        defaults={"max_retries": 1},
    ),
    Provider(
        name="groq",
        path="langchain_groq:ChatGroq",
        extra="groq",
        distribution="langchain-groq",
        needs=(_key("GROQ_API_KEY", options=("api_key", "groq_api_key")),),
        defaults={"max_retries": 0},
    ),
)

_BY_NAME = {word: provider for provider in PROVIDERS for word in (provider.name, *provider.aliases)}
_KNOWN = (*(provider.name for provider in PROVIDERS), LOCAL)
_FAMILIAR = (
    (re.compile(r"((us|eu|apac|global)\.)?(anthropic|amazon|meta|cohere|mistral|ai21|deepseek|openai)\."), "bedrock"),
    (re.compile(r"(gpt|chatgpt|o\d|codex|ft:gpt)\b"), "openai"),
    (re.compile(r"claude"), "anthropic"),
    (re.compile(r"(models/)?(gemini|gemma-3n)"), "google"),
    (re.compile(r"deepseek-(chat|reasoner)"), "deepseek"),
    (re.compile(r"(mistral|ministral|magistral|codestral|pixtral|devstral)-"), "mistral"),
    (re.compile(r".*\.gguf$"), LOCAL),
    (re.compile(r"(llama|qwen|phi|gemma|mistral|deepseek-r1|gpt-oss|smollm)"), "ollama"),
)


def parse_model_string(string: str) -> ModelString:
    """Take a model string apart: `provider:name`, `local`, or `openai_compatible:name@url`.

    Raises:
        UnknownModelError: it has no provider, no name, or names a provider that is not in the table.
    """
    text = string.strip()
    word, colon, name = text.partition(":")
    word = word.strip().lower()
    if word == LOCAL:
        return ModelString(provider=None, name=name.strip())
    provider = _BY_NAME.get(word) if colon else None
    if provider is None:
        raise UnknownModelError(_unknown(string, text, word, bool(colon)))
    name = name.strip()
    base_url = None
    if provider.name == "openai_compatible" and "@" in name:
        name, _, base_url = name.rpartition("@")
        if not re.match(r"https?://", base_url):
            raise UnknownModelError(
                f"model {string!r} has {base_url!r} where a URL belongs; "
                "write it as 'openai_compatible:NAME@http://host:port/v1'"
            )
    if not name:
        raise UnknownModelError(f"model {string!r} has no name after the provider; write it as '{word}:NAME'")
    return ModelString(provider=provider, name=name, base_url=base_url)


def missing_needs(provider: Provider, options: Mapping[str, Any]) -> list[Need]:
    """Return what the provider needs that neither the options nor the environment give."""
    if any(options.get(word) or os.environ.get(word) for word in provider.free_with):
        return []
    return [need for need in provider.needs if not need.is_met(options)]


def is_available(provider: Provider) -> bool:
    """Return whether the provider's package is installed."""
    return is_installed(provider.package)


def _unknown(string: str, text: str, word: str, has_colon: bool) -> str:
    known = f"known providers: {', '.join(_KNOWN)}"
    guess = next((name for pattern, name in _FAMILIAR if pattern.match(text.lower())), None)
    if guess is not None:
        return f"model {string!r} names no provider; did you mean '{guess}:{text}'? {known}"
    if not has_colon:
        return f"model {string!r} names no provider; write it as 'provider:name'; {known}"
    close = get_close_matches(word, [*_BY_NAME, LOCAL], n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"model {string!r} names the provider {word!r}, which is unknown; {hint}{known}"
