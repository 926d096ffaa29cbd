"""The node that waits for a person's decision."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any, Literal

from graphwright._internal.jsonio import dumps
from graphwright._internal.threads import run_in_thread
from graphwright.engine.base import BaseNode, NodeContext, context_of
from graphwright.engine.edges import END
from graphwright.engine.interrupt import ask_in
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError, GraphwrightError
from graphwright.interrupts import HUMAN, read_approval
from graphwright.messages import AIMessage

__all__ = ["HumanNode", "ask_person"]

NOBODY_ANSWERED = "Nobody decided within {seconds:g} seconds, so nothing was approved: {prompt}"

Decision = Literal["approved", "denied", "timeout"]

_WORDS: dict[str, Decision] = {
    "approve": "approved",
    "approved": "approved",
    "deny": "denied",
    "denied": "denied",
}


class HumanNode(BaseNode):
    """Asks a person and leads on by the decision: approved, denied, or none in time.

    The handler is `human_handler(prompt, state)` of the engine or of `build_agent`, sync or async. It returns True or
    False, `"approved"` or `"denied"`, or an object with `approved` or `decision`; anything else, and an exception, is
    a failure of the node. So is a run without a handler that has no log either, and a denial without `on_deny`. In a
    run with a log and no handler the run pauses, and `agent.resume` gives the decision.
    """

    node_type = "human"
    reenterable = True
    is_gate = True
    may_mutate = False

    def __init__(
        self,
        name: str,
        *,
        prompt_template: str = "Approve this action?",
        timeout: float = 300.0,
        on_approve: str = END,
        on_deny: str | None = None,
        on_timeout: str = END,
        **base: Any,
    ) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well.

        `{key}` in the template is the context's value under that key. `timeout` is in seconds. With
        `on_approve="__end__"`, edges and `default_next` of the node come first. With `on_timeout="__end__"` the run
        ends with a reply that says that nobody decided.
        """
        super().__init__(name, **base)
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
            raise ConfigurationError(f"timeout of node {name!r} is {timeout!r}; give seconds above 0")
        _parts(prompt_template, name)
        self.prompt_template = prompt_template
        self.timeout = timeout
        self.on_approve = on_approve
        self.on_deny = on_deny
        self.on_timeout = on_timeout

    def targets(self) -> dict[str, str]:
        """Return what leads on from here, the three exits included."""
        found = {**super().targets(), "on_approve": self.on_approve, "on_timeout": self.on_timeout}
        if self.on_deny is not None:
            found["on_deny"] = self.on_deny
        return found

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Wait for the decision."""
        context = context_of(config)
        prompt = _filled(self.prompt_template, state.context, self.name)
        decision, reason = await self._ask_human(prompt, state, context)
        result = NodeResult(self.name, "human", output=decision, raw_output=decision)
        because = f": {reason}" if reason else ""
        result.transition_reason = f"{decision}{because}"
        state.context[f"{self.name}_output"] = decision
        if decision == "approved":
            result.next_node = None if self.on_approve == END else self.on_approve
        elif decision == "timeout":
            result.next_node = self.on_timeout
            if self.on_timeout == END:
                # Whatever stands in the conversation was not approved: it must not pass for the answer.
                text = NOBODY_ANSWERED.format(seconds=self.timeout, prompt=prompt)
                result.messages_added = [AIMessage(content=text)]
        elif self.on_deny is not None:
            result.next_node = self.on_deny
        else:
            result.error = f"the person denied {prompt!r}{because}; give on_deny to go on after a denial"
        return result

    async def _ask_human(self, prompt: str, state: GraphState, context: NodeContext) -> tuple[Decision, str]:
        """Return the decision and its reason. The one place where the node waits."""
        return await ask_person(context, prompt, state, asked_by=self.name, timeout=self.timeout)


async def ask_person(
    context: NodeContext, prompt: str, state: GraphState, *, asked_by: str, timeout: float = 300.0
) -> tuple[Decision, str]:
    """Return a person's decision and its reason; `timeout` is in seconds.

    The human handler is asked. Where there is none and the run has a log, the run pauses.

    Raises:
        GraphwrightError: there is no handler and no log, or what the handler returned is no decision.
    """
    handler = context.human_handler
    if handler is None and context.journal is not None:
        return _paused_for(context, prompt, asked_by, timeout)
    if handler is None:
        raise GraphwrightError(
            f"node {asked_by!r} asks a person and there is no one to ask; "
            "give human_handler= to build_agent or to PromptGraphEngine, or runlog= so that the run can pause"
        )
    try:
        async with asyncio.timeout(timeout) as limit:
            said = await _called(handler, prompt, state)
    except TimeoutError:
        if not limit.expired():
            raise
        return "timeout", ""
    return _decision(said), str(_field(said, "reason") or _field(said, "comment") or "")


def _paused_for(context: NodeContext, prompt: str, asked_by: str, timeout: float) -> tuple[Decision, str]:
    question = {"node": asked_by, "prompt": prompt}
    answer = ask_in(context, [(HUMAN, asked_by, question, time.time() + timeout)])[0]
    if answer is None:
        return "timeout", ""
    decision = read_approval(answer)
    return ("approved" if decision.approved else "denied"), decision.reason or ""


async def _called(handler: Callable[..., Any], prompt: str, state: GraphState) -> Any:
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None)):  # noqa: B004
        return await handler(prompt, state)
    # A sync handler waits for a person, and must not stop everything else meanwhile.
    said = await run_in_thread(handler, prompt, state)
    return await said if inspect.isawaitable(said) else said


def _decision(said: Any) -> Decision:
    if isinstance(said, bool):
        return "approved" if said else "denied"
    if isinstance(said, str):
        word = getattr(said, "value", said).strip().lower()
        if word in _WORDS:
            return _WORDS[word]
    elif said is not None:
        approved = _field(said, "approved")
        if isinstance(approved, bool):
            return "approved" if approved else "denied"
        decision = _field(said, "decision")
        if isinstance(decision, (bool, str)):
            return _decision(decision)
    raise GraphwrightError(
        f"human_handler returned {said!r}; return True or False, or an object with approved=True or approved=False"
    )


def _field(said: Any, name: str) -> Any:
    return said.get(name) if isinstance(said, Mapping) else getattr(said, name, None)


def _parts(template: Any, node: str) -> list[tuple[str, str | None]]:
    """Return the template as pairs of text and key; only plain keys, so that no text can reach into a value."""
    if not isinstance(template, str) or not template:
        raise ConfigurationError(f"prompt_template of node {node!r} is {template!r}; give a text")
    try:
        parsed = list(Formatter().parse(template))
    except ValueError as error:
        raise ConfigurationError(
            f"prompt_template {template!r} of node {node!r}: {error}; write a brace of the text twice"
        ) from None
    for _, key, spec, conversion in parsed:
        if key is not None and (not key.isidentifier() or spec or conversion):
            raise ConfigurationError(
                f"prompt_template {template!r} of node {node!r} has {{{key}}}; only a plain key such as {{name}} is "
                "filled in, and a brace of the text is written twice"
            )
    return [(text, key) for text, key, _, _ in parsed]


def _filled(template: str, values: Mapping[str, Any], node: str) -> str:
    shown = []
    for text, key in _parts(template, node):
        shown.append(text)
        if key is None:
            continue
        if key not in values:
            known = ", ".join(sorted(map(str, values))) or "nothing"
            raise GraphwrightError(
                f"prompt_template of node {node!r} needs {key!r}, which the context does not have; it has {known}"
            )
        value = values[key]
        shown.append(dumps(value) if isinstance(value, (Mapping, list, tuple)) else str(value))
    return "".join(shown)
