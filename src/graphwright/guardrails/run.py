"""The guards of one run: they judge at its five seams, remember what came before, and tell whoever listens."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.exceptions import GuardrailViolation
from graphwright.guardrails.base import Guarded, GuardVerdict, Seam
from graphwright.guardrails.held import held_model
from graphwright.guardrails.judging import judged, seams_of
from graphwright.guardrails.texts import replaced_texts, texts_in
from graphwright.models.base import ChatModel
from graphwright.run_events import Emit, GuardDecided
from graphwright.run_scope import run_scope
from graphwright.tools.base import GatedCall, ToolGate, Verdict

__all__ = ["RunGuards"]

logger = logging.getLogger(__name__)

_TAIL = 300
_REMEMBERED = 8


class RunGuards:
    """What the guards of an agent do in one run. Made anew for each run, since it remembers."""

    def __init__(
        self,
        guards: Sequence[Any],
        *,
        emit: Emit | None = None,
        leaves: Callable[[Exception], BaseException] = lambda error: error,
    ) -> None:
        """`leaves` makes what carries a refused answer out of the run, past every node that would catch it."""
        self._guards = tuple(guards)
        self._emit = emit
        self._leaves = leaves
        self._results: deque[str] = deque(maxlen=_REMEMBERED)
        self._seams = seams_of(guards)
        self.labels: set[str] = set()
        """What the guards marked the run with."""
        self.gate: ToolGate | None = _Gate(self) if "tool_arguments" in self._seams else None
        self.after_tool: Callable[[str, Any, dict[str, Any]], Awaitable[Any]] | None = (
            self._check_result if "tool_result" in self._seams else None
        )
        self._by_sentence = bool(guards) and all(
            getattr(guard, "hold", "reply") == "sentence" for guard in guards if "output" in seams_of([guard])
        )

    def held(self, model: ChatModel) -> ChatModel:
        """Return the model with its replies held until they are judged; the model itself where nothing judges them."""
        if "output" not in self._seams:
            return model
        return held_model(model, self._check_output, by_sentence=self._by_sentence, refused=self._refused_output)

    async def check_input(self, value: Any, *, beside: Sequence[str] = ()) -> Any:
        """Return what the user sent, as it may go on; `beside` are texts that are judged with it and stay as they are.

        All of it is judged as one text, so that a phrase in several pieces is seen, and rewritten piece by piece.

        Raises:
            GuardrailViolation: a guard refuses it.
        """
        if "input" not in self._seams:
            return value
        texts = [text for text in texts_in(value) if text]
        together = [*texts, *(text for text in beside if text)]
        if not together:
            return value
        passed = await self._text(Guarded("input", "\n".join(together)))
        if passed == "\n".join(together):
            return value
        if len(together) == 1 and texts:
            return replaced_texts(value, [passed if text else text for text in texts_in(value)])
        return replaced_texts(
            value, [await self._text(Guarded("input", text)) if text else text for text in texts_in(value)]
        )

    async def check_memory_write(self, text: str) -> str:
        """Return what a memory may keep.

        Raises:
            GuardrailViolation: a guard refuses it.
        """
        return await self._text(Guarded("memory_write", text)) if "memory_write" in self._seams else text

    async def _check_output(self, text: str) -> str:
        try:
            return await self._text(Guarded("output", text))
        except GuardrailViolation as violation:
            raise self._leaves(violation) from None

    def _refused_output(self) -> BaseException:
        return self._leaves(GuardrailViolation(None, "output"))

    async def _check_result(self, name: str, content: Any, args: dict[str, Any]) -> Any:
        """Return the content of a result as the model may read it. What this raises withholds it."""
        texts = texts_in(content)
        whole = "\n".join(texts)
        if not whole:
            return content
        before = " ".join(self._results)
        kept = whole if len(whole) <= 2 * _TAIL else f"{whole[:_TAIL]} {whole[-_TAIL:]}"
        self._results.append(kept)
        try:
            passed = await self._text(Guarded("tool_result", whole, tool_name=name, before=before))
        except GuardrailViolation:
            # The model never reads it, so nothing that follows can complete it.
            if kept in self._results:
                self._results.remove(kept)
            raise
        if passed == whole:
            return content
        if len(texts) == 1:
            return replaced_texts(content, [passed])
        new = [await self._text(Guarded("tool_result", text, tool_name=name)) for text in texts]
        return replaced_texts(content, new)

    async def _text(self, guarded: Guarded) -> str:
        """Return the text as it may go on."""
        text = guarded.text
        for name, verdict in await judged(self._guards, guarded):
            await self.note(guarded, name, verdict)
            if verdict.action in ("deny", "ask"):  # there is nobody to ask about a text
                raise GuardrailViolation(verdict.report, guarded.seam)
            if verdict.action == "rewrite":
                text = verdict.value
        return text

    async def note(self, guarded: Guarded, name: str, verdict: GuardVerdict) -> None:
        """Tell of a verdict."""
        self.labels |= verdict.labels
        level = logging.WARNING if verdict.failed or verdict.action in ("deny", "ask") else logging.INFO
        logger.log(level, "guard %r says %s at the %s: %s", name, verdict.action, guarded.seam, verdict.reason or "-")
        if self._emit is None:
            return
        scope = run_scope.get()
        await self._emit(
            GuardDecided(
                guarded.seam,
                verdict.action,
                name,
                verdict.reason,
                sorted(verdict.labels),
                failed=verdict.failed,
                tool_name=guarded.tool_name,
                run_id=scope.run_id if scope is not None else "",
            )
        )

    async def judge_call(self, gated: GatedCall) -> Verdict:
        """Return what is to become of a tool call."""
        seam: Seam = "tool_arguments"
        guarded = Guarded(seam, dumps(gated.args), tool_name=gated.call.name, arguments=gated.args)
        args: dict[str, Any] | None = None
        for name, verdict in await judged(self._guards, guarded):
            await self.note(guarded, name, verdict)
            reason = f"the guard {name!r} objects" + (f": {verdict.reason}" if verdict.reason else "")
            if verdict.action == "deny":
                return Verdict("deny", reason=reason)
            if verdict.action == "ask":
                shown = {"type": "approval_request", "params": args if args is not None else gated.args}
                return Verdict("ask", args, reason, shown)
            if verdict.action == "rewrite":
                args = verdict.value
        return Verdict("allow", args)


class _Gate:
    def __init__(self, guards: RunGuards) -> None:
        self._guards = guards

    async def judge(self, gated: GatedCall) -> Verdict:
        """Return what is to become of the call."""
        return await self._guards.judge_call(gated)
