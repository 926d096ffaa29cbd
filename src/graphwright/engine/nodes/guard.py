"""The node that checks a value or a message against guards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.engine.base import BaseNode
from graphwright.engine.edges import END
from graphwright.engine.nodes._guarding import Verdict, guard_name, verdict_of
from graphwright.engine.state import GraphState, NodeResult
from graphwright.exceptions import ConfigurationError
from graphwright.messages import text_of

__all__ = ["GuardNode"]


class GuardNode(BaseNode):
    """Runs guards, without a model, and leads on by their verdict.

    A guard is an object with `check_output(text)` or `check(value)`, or a callable; sync or async. It refuses by
    returning something false, an object whose `passed` is false, or by raising. A text that it returns takes the
    place of the one it was given. A failing guard without `on_fail` is a failure of the node.
    """

    node_type = "guard"
    reenterable = True
    is_gate = True
    may_mutate = False

    def __init__(
        self,
        name: str,
        *,
        guards: Iterable[Any] | None = None,
        target_key: str | None = None,
        on_pass: str = END,
        on_fail: str | None = None,
        **base: Any,
    ) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well.

        `target_key` is the key of the context to check; `None` is the last message that has text. With
        `on_pass="__end__"`, edges and `default_next` of the node come first.
        """
        super().__init__(name, **base)
        self.guards = list(guards or ())
        for guard in self.guards:
            if isinstance(guard, type) or not (_is_checker(guard) or callable(guard)):
                raise ConfigurationError(
                    f"guard {guard!r} of node {name!r} is no guard; give an object with check_output or check, "
                    "or a function"
                )
        if not self.guards:
            raise ConfigurationError(f"node {name!r} has no guards; give guards=[...]")
        self.target_key = target_key
        self.on_pass = on_pass
        self.on_fail = on_fail

    def targets(self) -> dict[str, str]:
        """Return what leads on from here, both verdicts included."""
        found = {**super().targets(), "on_pass": self.on_pass}
        if self.on_fail is not None:
            found["on_fail"] = self.on_fail
        return found

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Run every guard and lead on accordingly."""
        result = NodeResult(self.name, "guard")
        place, value = self._target(state)
        reasons = []
        for guard in self.guards:
            name = guard_name(guard)
            verdict = Verdict(False, self._missing()) if place is None else await verdict_of(guard, value)
            if not verdict.passed:
                result.guards_failed.append(name)
                reasons.append(f"guard {name!r} refused{verdict.because}")
                continue
            result.guards_passed.append(name)
            if verdict.text is not None and isinstance(value, str):
                value = verdict.text
        result.output = {"passed": not reasons, "reasons": reasons}
        if not reasons:
            assert place is not None
            self._write(state, place, value)
            result.next_node = None if self.on_pass == END else self.on_pass
            result.transition_reason = "guards passed"
        elif self.on_fail is not None:
            result.next_node = self.on_fail
            result.transition_reason = "guard failed"
        else:
            result.error = "; ".join(reasons)
        return result

    def _missing(self) -> str:
        if self.target_key is None:
            return "there is no message with text to check"
        return f"the context has no key {self.target_key!r} to check"

    def _target(self, state: GraphState) -> tuple[str | int | None, Any]:
        """Return where the value to check is, and the value."""
        if self.target_key is not None:
            known = self.target_key in state.context
            return (self.target_key, state.context[self.target_key]) if known else (None, None)
        for index in range(len(state.messages) - 1, -1, -1):
            text = text_of(state.messages[index])
            if text:
                return index, text
        return None, None

    def _write(self, state: GraphState, place: str | int, value: Any) -> None:
        if isinstance(place, str):
            state.context[place] = value
            return
        message = state.messages[place]
        if value == text_of(message):
            return
        content: Any = value
        if isinstance(message.content, list):
            others = [part for part in message.content if isinstance(part, dict) and part.get("type") != "text"]
            content = [{"type": "text", "text": value}, *others]
        # Messages are replaced, never edited: the caller may hold the old one.
        state.messages[place] = changed = message.model_copy(update={"content": content})
        if state.turn_question is message:
            state.turn_question = changed


def _is_checker(guard: Any) -> bool:
    return any(callable(getattr(guard, method, None)) for method in ("check_output", "check"))
