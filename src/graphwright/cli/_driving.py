"""Show a run until it has ended, and answer what it waits for on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from graphwright.cli._agents import user_name
from graphwright.cli._exits import ANSWERED, NO_ANSWER, PAUSED
from graphwright.cli._text import visible
from graphwright.cli._views import Outcome, View
from graphwright.exceptions import InterruptError

if TYPE_CHECKING:
    from graphwright.interrupts import Interrupt
    from graphwright.runtime import Run

__all__ = ["Driver", "Unanswered", "outcome_of"]


class Unanswered(Exception):
    """Nobody answers now, so the run stays paused."""


class Driver:
    """Takes a run to its end, before a view. `run` is its handle: another one after a question has expired."""

    def __init__(
        self, start: Callable[[], Run], go_on: Callable[[], Run], view: View, ask: Callable[[Interrupt], Awaitable[Any]]
    ) -> None:
        """Start the run. `go_on` starts the rest of a paused one without an answer; `ask` returns an answer."""
        self.run = start()
        self._reader = self.run.events()
        self._go_on = go_on
        self.view = view
        self._ask = ask

    async def to_end(self) -> Any:
        """Return the result of the run when it has ended."""
        from graphwright.runtime.history import is_expired

        while True:
            with self.view.on_stage():
                async for event in self._reader:
                    self.view.show(event)
            if not self.run.pending:
                return await self.run.result()
            item = self.run.pending[0]
            if is_expired(item):
                self.view.note(f"the time to answer {item.id} has passed")
                self.run = self._go_on()
                self._reader = self.run.events()
            else:
                await self._answer(item)

    async def _answer(self, item: Interrupt) -> None:
        value = await self._ask(item)
        # Before the answer is given, so that nothing of what it sets off is missed.
        self._reader = self.run.events()
        try:
            await self.run.answer(item.id, value, by=user_name())
        except InterruptError as error:
            self.view.note(visible(str(error)))


def outcome_of(result: Any) -> Outcome:
    """Return how a run ended, from the result of an agent or the response of a bot."""
    from graphwright.orchestrator import BotResponse

    code = {"completed": ANSWERED, "paused": PAUSED}.get(result.status, NO_ANSWER)
    if not isinstance(result, BotResponse):
        return Outcome(status=result.status, exit_code=code, text=result.text, output=result.output)
    error = None if code == ANSWERED else result.get("error") or result.content or result.status
    return Outcome(status=result.status, exit_code=code, text=result.content, output=result.content, error=error)
