"""Run an agent in front of a view, and end it cleanly whatever happens."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphwright.cli._event_loop import run_async
from graphwright.cli._exits import ANSWERED, PAUSED, exit_code_of
from graphwright.cli._loading import call_factory, is_reference, load_reference, tools_of_file
from graphwright.cli._servers import servers_of
from graphwright.cli._signals import was_terminated
from graphwright.cli._views import Outcome, View
from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.agent import Agent, RunResult

__all__ = ["AgentPlan", "model_of", "needed_model", "plan_of", "run_and_show", "tools_of"]

_NO_MODEL = """\
no model was given; add one of
  --model openai:NAME     or another provider: graphwright models list
  --model local           a small model on this machine, without a key
  --model FILE.py:NAME    a model object, or a function that makes one
or see an agent at work without a model: graphwright demo"""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentPlan:
    """What an agent is to be made of."""

    model: Any
    """What `build_agent` takes, or an awaitable of it."""

    tools: list[Any]

    servers: Any = None
    """MCP servers, by name."""

    instructions: str | None = None

    compaction: bool | None = None
    """`False` shows the model the whole conversation, however long it gets."""

    pattern: Any = None
    """A name or a graph, or an awaitable of it."""

    max_iterations: int | None = None

    timeout: float | None = None
    """Seconds for the whole run."""

    runlog: Any = None
    """Where the run is kept, so that it can go on later."""

    async def build(self) -> Agent:
        """Make the agent."""
        from graphwright.agent import build_agent

        options: dict[str, Any] = {} if self.max_iterations is None else {"max_agent_iterations": self.max_iterations}
        return await build_agent(
            model=await self.model if inspect.isawaitable(self.model) else self.model,
            extra_tools=self.tools,
            servers=self.servers,
            instructions=self.instructions,
            agent_pattern=await self.pattern if inspect.isawaitable(self.pattern) else self.pattern,
            max_invocation_time=self.timeout or 0,
            context_compaction=self.compaction,
            runlog=self.runlog,
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


def needed_model(options: argparse.Namespace) -> str:
    """Return what `--model` says.

    Raises:
        ConfigurationError: it is missing; the message says what it can be.
    """
    if options.model is None:
        raise ConfigurationError(_NO_MODEL)
    return str(options.model)


def tools_of(options: argparse.Namespace) -> list[Any]:
    """Return the tools that `--tools` and `--root` give. Those that only read say so."""
    from graphwright.cli.files import file_tools
    from graphwright.tools import as_tools

    tools = [tool for path in options.tools for tool in tools_of_file(path)]
    if options.root is not None:
        for reader in as_tools(file_tools(options.root, hidden=options.hidden)):
            reader.risk_level, reader.idempotent = 0, True
            tools.append(reader)
    elif options.hidden:
        raise ConfigurationError("--hidden is about the files of --root DIR, which is missing; add it")
    return tools


def plan_of(options: argparse.Namespace, runlog: Any = None) -> AgentPlan:
    """Return the plan of the agent that the options of `run` describe."""
    from graphwright.cli.graph import graph_of

    tools = tools_of(options)
    return AgentPlan(
        model=model_of(needed_model(options)),
        tools=tools,
        servers=servers_of(options.mcp),
        instructions=options.instructions,
        pattern=None if options.pattern is None else graph_of(options.pattern),
        max_iterations=options.max_iterations,
        timeout=options.timeout,
        runlog=runlog,
    )


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
            result = run_async(_run(made, goal, view))
        except BrokenPipeError:
            raise
        except KeyboardInterrupt as error:
            view.end(Outcome(status="aborted", exit_code=exit_code_of(error), error=_ending()))
            raise
        except Exception as error:  # shown here, explained by `main`
            view.end(Outcome(status="failed", exit_code=exit_code_of(error), error=str(error) or type(error).__name__))
            raise
        if result.status == "paused":
            return _show_pause(result, view)
        view.end(Outcome(status="completed", exit_code=ANSWERED, text=result.text, output=result.output))
        for text in after:
            view.note(text)
    return ANSWERED


def _show_pause(result: RunResult, view: View) -> int:
    from graphwright.cli._forms import lines_of

    for item in result.pending:
        for line in lines_of(item):
            view.note(line)
    view.note(f"the run waits; go on with: graphwright runs resume {result.run_id}")
    view.end(Outcome(status="paused", exit_code=PAUSED, error="the run waits for answers"))
    return PAUSED


def _ending() -> str:
    return "terminated" if was_terminated() else "interrupted"


async def _run(plan: AgentPlan, goal: str, view: View) -> RunResult:
    async with await plan.build() as agent:
        run = agent.start(goal)
        try:
            async for event in run.events():
                view.show(event)
            return await run.result()
        finally:
            await run.aclose()
