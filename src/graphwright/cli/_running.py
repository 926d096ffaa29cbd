"""Run an agent in front of a view, and end it cleanly whatever happens."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphwright.cli._exits import ANSWERED, exit_code_of
from graphwright.cli._loading import call_factory, is_reference, load_reference
from graphwright.cli._views import Outcome, View
from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.agent import Agent, RunResult

__all__ = ["AgentPlan", "model_of", "run_and_show"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentPlan:
    """What an agent is to be made of."""

    model: Any
    """What `build_agent` takes, or an awaitable of it."""

    tools: list[Any]

    instructions: str | None = None

    compaction: bool | None = None
    """`False` shows the model the whole conversation, however long it gets."""

    pattern: Any = None
    """A name or a graph, or an awaitable of it."""

    max_iterations: int | None = None

    timeout: float | None = None
    """Seconds for the whole run."""

    async def build(self) -> Agent:
        """Make the agent."""
        from graphwright.agent import build_agent

        options: dict[str, Any] = {} if self.max_iterations is None else {"max_agent_iterations": self.max_iterations}
        return await build_agent(
            model=await self.model if inspect.isawaitable(self.model) else self.model,
            extra_tools=self.tools,
            instructions=self.instructions,
            agent_pattern=await self.pattern if inspect.isawaitable(self.pattern) else self.pattern,
            max_invocation_time=self.timeout or 0,
            context_compaction=self.compaction,
            **options,
        )


def model_of(text: str) -> Any:
    """Return the model that `--model` means: a model string as it is, or the object that FILE.py:NAME names.

    Raises:
        ConfigurationError: the file, or the name in it, cannot be used.
    """
    if not is_reference(text):
        return text
    from graphwright.models import as_model

    named = load_reference(text, "model")
    try:
        return as_model(named)
    except ConfigurationError:
        if not callable(named):
            raise
    return call_factory(named, text, "model")


def run_and_show(
    plan: Callable[[], AgentPlan], goal: str, view: View, *, before: Sequence[str] = (), after: Sequence[str] = ()
) -> int:
    """Run an agent on a goal, show it, and return the exit code. What ended it otherwise is raised after it is shown.

    `plan` is called on the view's stage, before there is an event loop: it loads files of the user's. `before` and
    `after` are remarks to show around a run.
    """
    with view.on_stage():
        try:
            made = plan()
            for text in before:
                view.note(text)
            result = asyncio.run(_run(made, goal, view))
        except BrokenPipeError:
            raise
        except KeyboardInterrupt as error:
            view.end(Outcome(status="aborted", exit_code=exit_code_of(error), error="interrupted"))
            raise
        except Exception as error:  # shown here, explained by `main`
            view.end(Outcome(status="failed", exit_code=exit_code_of(error), error=str(error) or type(error).__name__))
            raise
        view.end(Outcome(status="completed", exit_code=ANSWERED, text=result.text, output=result.output))
        for text in after:
            view.note(text)
    return ANSWERED


async def _run(plan: AgentPlan, goal: str, view: View) -> RunResult:
    async with await plan.build() as agent:
        run = agent.start(goal)
        try:
            async for event in run.events():
                view.show(event)
            return await run.result()
        finally:
            await run.aclose()
