"""What a model string means, and what is missing to use it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import graphwright
from graphwright.exceptions import ConfigurationError, MissingExtraError, UnknownModelError
from graphwright.models import LangChainModel, as_model, check_model
from graphwright.models import registry as registry_module
from graphwright.models.providers import PROVIDERS, missing_needs, parse_model_string
from graphwright.testing import ScriptedModel


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS:
        for need in provider.needs:
            for variable in need.variables:
                monkeypatch.delenv(variable, raising=False)
        for word in provider.free_with:
            monkeypatch.delenv(word, raising=False)
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY", raising=False)


@pytest.mark.parametrize(
    ("string", "provider", "name"),
    [
        ("openai:gpt-5-mini", "openai", "gpt-5-mini"),
        (" OpenAI:gpt-5-mini ", "openai", "gpt-5-mini"),
        ("anthropic:claude-x", "anthropic", "claude-x"),
        ("google:gemini-x", "google", "gemini-x"),
        ("google_genai:gemini-x", "google", "gemini-x"),
        ("gemini:gemini-x", "google", "gemini-x"),
        ("azure:my-deployment", "azure", "my-deployment"),
        ("azure_openai:my-deployment", "azure", "my-deployment"),
        ("bedrock:anthropic.claude-x-v1:0", "bedrock", "anthropic.claude-x-v1:0"),
        ("aws:amazon.nova", "bedrock", "amazon.nova"),
        ("ollama:llama3:8b", "ollama", "llama3:8b"),
        ("deepseek:deepseek-chat", "deepseek", "deepseek-chat"),
        ("mistralai:mistral-small", "mistral", "mistral-small"),
        ("groq:org/name", "groq", "org/name"),
    ],
)
def test_a_string_names_its_provider_and_model(string: str, provider: str, name: str) -> None:
    parsed = parse_model_string(string)

    assert parsed.provider is not None
    assert (parsed.provider.name, parsed.name) == (provider, name)


@pytest.mark.parametrize(
    ("string", "hint"),
    [
        ("gpt-5-mini", "did you mean 'openai:gpt-5-mini'?"),
        ("claude-x", "did you mean 'anthropic:claude-x'?"),
        ("gemini-x", "did you mean 'google:gemini-x'?"),
        ("anthropic.claude-x-v1:0", "did you mean 'bedrock:anthropic.claude-x-v1:0'?"),
        ("llama3:8b", "did you mean 'ollama:llama3:8b'?"),
        ("./small.gguf", "did you mean 'local:./small.gguf'?"),
        ("something", "write it as 'provider:name'"),
        ("opnai:gpt-5", "did you mean 'openai'?"),
        ("nobody:x", "known providers: openai, "),
        ("openai:", "has no name after the provider"),
        ("openai_compatible:m@nowhere", "'nowhere' where a URL belongs"),
        ("", "names no provider"),
    ],
)
def test_a_string_that_means_nothing_says_what_would(string: str, hint: str) -> None:
    with pytest.raises(UnknownModelError) as caught:
        as_model(string)

    assert hint in str(caught.value)
    assert repr(string) in str(caught.value)
    assert check_model(string).problems == (str(caught.value),)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_a_missing_package_is_one_line_that_names_the_extra(provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "is_available", lambda _: False)

    with pytest.raises(MissingExtraError) as caught:
        as_model(f"{provider.name}:m")

    assert f"graphwright[{provider.extra}]" in str(caught.value)
    assert provider.distribution in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("string", "variables"),
    [
        ("openai:m", ["OPENAI_API_KEY"]),
        ("anthropic:m", ["ANTHROPIC_API_KEY"]),
        ("azure:m", ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION"]),
        ("openai_compatible:m", ["OPENAI_COMPATIBLE_BASE_URL"]),
    ],
)
def test_a_missing_key_is_one_line_that_names_the_variable(string: str, variables: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        as_model(string)

    assert all(variable in str(caught.value) for variable in variables)
    assert "\n" not in str(caught.value)
    check = check_model(string)
    assert not check.ok
    assert [any(variable in problem for problem in check.problems) for variable in variables] == [True] * len(variables)


@pytest.mark.parametrize(
    ("provider", "settings", "missing"),
    [
        ("google", {"GEMINI_API_KEY": "k"}, 0),
        ("google", {"GOOGLE_GENAI_USE_VERTEXAI": "true"}, 0),
        ("google", {}, 1),
        ("bedrock", {}, 0),
        ("ollama", {}, 0),
        ("deepseek", {}, 1),
        ("mistral", {"MISTRAL_API_KEY": "k"}, 0),
        ("groq", {}, 1),
        ("azure", {"AZURE_OPENAI_AD_TOKEN": "t", "OPENAI_API_VERSION": "v"}, 1),
        ("openai", {"OPENAI_BASE_URL": "http://127.0.0.1:1"}, 0),
    ],
)
def test_what_a_provider_needs(
    provider: str, settings: dict[str, str], missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    row = next(row for row in PROVIDERS if row.name == provider)

    assert len(missing_needs(row, {})) == missing


def test_options_count_as_well_as_variables() -> None:
    assert check_model("openai:m", api_key="k").ok
    assert check_model("azure:m", api_key="k", azure_endpoint="http://127.0.0.1", api_version="v").ok


def test_a_check_of_a_package_that_is_not_there_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphwright.models.check.is_available", lambda _: False)

    check = check_model("groq:m")

    assert check.provider == "groq"
    assert check.problems[0].endswith("pip install 'graphwright[groq]'")
    assert "GROQ_API_KEY" in check.problems[1]


def test_a_model_from_a_string_leaves_retries_to_us_and_asks_for_usage() -> None:
    model = as_model("openai:gpt-x", api_key="k", temperature=0.5)

    assert isinstance(model, LangChainModel)
    assert model.name == "openai:gpt-x"
    assert not model.own_retries
    assert (model.model.max_retries, model.model.stream_usage, model.model.temperature) == (0, True, 0.5)
    assert as_model("anthropic:c", api_key="k").model.max_retries == 0  # type: ignore[attr-defined]


def test_retries_of_the_client_that_were_asked_for_stay() -> None:
    model = as_model("openai:gpt-x", api_key="k", max_retries=3)

    assert isinstance(model, LangChainModel)
    assert model.own_retries
    assert model.model.max_retries == 3  # type: ignore[attr-defined]


def test_azure_takes_its_deployment_and_endpoint() -> None:
    model = as_model("azure:mine", api_key="k", base_url="https://x.invalid", api_version="v")

    assert isinstance(model, LangChainModel)
    assert (model.model.deployment_name, model.model.azure_endpoint) == ("mine", "https://x.invalid")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("string", "options"),
    [
        ("openai:m", {"base_url": "http://127.0.0.1:8000/v1"}),
        ("openai_compatible:m@http://127.0.0.1:8000/v1", {}),
        ("openai_compatible:m", {"base_url": "http://127.0.0.1:8000/v1"}),
    ],
)
def test_a_compatible_server_needs_no_key(string: str, options: dict[str, Any]) -> None:
    model = as_model(string, **options)

    assert isinstance(model, LangChainModel)
    assert model.model.openai_api_base == "http://127.0.0.1:8000/v1"  # type: ignore[attr-defined]
    assert check_model(string, **options).ok


def test_a_compatible_server_is_not_sent_the_key_of_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")

    model: Any = as_model("openai_compatible:m@http://127.0.0.1:8000/v1")
    same: Any = as_model("openai:m", base_url="http://127.0.0.1:8000/v1")

    assert model.model.openai_api_key.get_secret_value() != "secret"
    assert same.model.openai_api_key.get_secret_value() == "secret"


def test_a_setting_that_does_not_fit_is_told_without_the_key() -> None:
    with pytest.raises(ConfigurationError, match="temperature") as caught:
        as_model("openai:m", api_key="sk-secret", temperature="hot")

    assert "sk-secret" not in str(caught.value)


def test_a_model_of_ones_own_is_returned_as_it_is() -> None:
    model = ScriptedModel([])

    assert as_model(model) is model


@pytest.mark.parametrize("value", [None, 5, object(), ScriptedModel, ["openai:m"]])
def test_anything_else_is_refused_with_an_example(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="is no model; give a string such as 'openai:gpt-5-mini'"):
        as_model(value)


def test_options_without_a_string_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"the options \['temperature'\] need a model string"):
        as_model(ScriptedModel([]), temperature=0.5)


def test_the_package_and_a_native_model_load_no_langchain_but_messages() -> None:
    code = (
        "import sys, asyncio\n"
        "import graphwright.models as m\n"
        "assert not any(n.startswith(('langchain', 'pydantic')) for n in sys.modules), 'import is not light'\n"
        "from langchain_core.messages import AIMessage, HumanMessage\n"
        "class Mine:\n"
        "    name = 'mine'\n"
        "    capabilities = m.ModelCapabilities(streaming=False)\n"
        "    async def complete(self, request): return AIMessage('hi')\n"
        "async def emit(event): pass\n"
        "r = m.ModelRequest(messages=[HumanMessage('x')])\n"
        "assert asyncio.run(m.call_model(m.as_model(Mine()), r, emit=emit)).text == 'hi'\n"
        "assert 'langchain_core.language_models' not in sys.modules\n"
        "assert 'langchain_core.runnables' not in sys.modules\n"
    )
    home = str(Path(graphwright.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": home}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)

    assert done.returncode == 0, done.stderr
