"""What every guard has to do, as a test that one of your own can run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.guardrails import Guarded, GuardVerdict, as_guards
from graphwright.guardrails.base import SEAMS, Seam
from graphwright.guardrails.judging import judged, seams_of

__all__ = ["guard_contract"]

_PATIENCE = 10.0
"""Seconds after which something that should have ended counts as hanging."""


async def guard_contract(
    make_guard: Callable[[], Any],
    *,
    harmless: str = "What is the weather in Lisbon?",
    refused: str | None = None,
    seam: Seam = "input",
) -> None:
    """Check a guard: it names known seams, passes what is harmless, refuses what it should, and tells no secrets.

    `refused` is a text that it has to refuse at `seam`; `make_guard` gives a fresh guard.

    Raises:
        AssertionError: the guard breaks a rule; the message says which.
    """
    guards = as_guards(make_guard())
    seams = seams_of(guards)
    _require(bool(seams) and seams <= set(SEAMS), f"it judges at {sorted(seams)}; the seams are {', '.join(SEAMS)}")
    arguments = {"text": harmless, "parts": [harmless]}
    for each in sorted(seams):
        given = deepcopy(arguments) if each == "tool_arguments" else None
        text = harmless if given is None else dumps(given)
        said = await _judged(guards, Guarded(each, text, tool_name="say", arguments=given))
        objections = [verdict for _, verdict in said if verdict.action != "allow" or verdict.failed]
        _require(not objections, f"it objects to the harmless text at the {each}: {objections}")
        _require(given in (None, arguments), "it changes the arguments that it is shown")
    if refused is None:
        return
    shown = Guarded(seam, refused, tool_name="say", arguments={"text": refused})
    at_once = await asyncio.gather(*(_judged(guards, shown) for _ in range(5)))
    for said in at_once:
        _require(bool(said) and said[-1][1].action in ("deny", "ask"), f"it lets the text pass at the {seam}")
        _require(not said[-1][1].failed, "it refuses only because it fails")
        _require(refused not in repr(said), "its verdict holds the text that it refuses")


async def _judged(guards: Any, guarded: Guarded) -> list[tuple[str, GuardVerdict]]:
    try:
        return await asyncio.wait_for(judged(guards, guarded), _PATIENCE)
    except TimeoutError:
        raise AssertionError(f"it gives no verdict within {_PATIENCE:g} s") from None


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise AssertionError(rule)
