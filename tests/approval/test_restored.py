"""Edits of arguments that were shown without their credentials."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphwright._internal.redact import REDACTED, redact, restored

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "password", "token", "n"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["path", "password", "api_key", "rows"]), VALUES, max_size=4))
def test_what_comes_back_as_it_was_shown_is_what_was_there(raw: dict[str, Any]) -> None:
    assert restored(redact(raw), redact(raw), raw) == raw


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ({"path": "/b", "password": REDACTED}, {"path": "/b", "password": "hunter22"}),
        ({"path": "/b", "password": "new"}, {"path": "/b", "password": "new"}),
        ({"path": "/b"}, {"path": "/b"}),
        (
            {"rows": [{"n": 2, "token": REDACTED}, {"n": 3}]},
            {"rows": [{"n": 2, "token": "tok-99"}, {"n": 3}]},
        ),
    ],
)
def test_only_what_was_hidden_is_put_back(edited: dict[str, Any], expected: dict[str, Any]) -> None:
    raw = {"path": "/a", "password": "hunter22", "rows": [{"n": 1, "token": "tok-99"}, {"n": 2}]}

    assert restored(edited, redact(raw), raw) == expected


@pytest.mark.parametrize(
    "edited",
    [
        {"path": REDACTED},
        {"other": REDACTED},
        {"path": f"/a?key={REDACTED}"},
        {"rows": [{"token": REDACTED}]},
        {"deep": {"er": [REDACTED]}},
    ],
)
def test_what_was_hidden_cannot_be_moved(edited: dict[str, Any]) -> None:
    raw = {"path": "/a", "password": "hunter22", "rows": [{"n": 1, "token": "tok-99"}, {"n": 2}]}

    with pytest.raises(ValueError, match="stands for something hidden"):
        restored(edited, redact(raw), raw)


def test_a_text_that_had_the_mark_in_it_before_is_left_alone() -> None:
    assert restored({"text": f"{REDACTED}!"}, {"text": REDACTED}, {"text": REDACTED}) == {"text": f"{REDACTED}!"}
