"""The agents that `chat` and `runs resume` work with: made from options, or named in the user's own code."""

from __future__ import annotations

import argparse
import inspect
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphwright.cli._loading import load_named
from graphwright.cli._running import model_of, needed_model, plan_of, tools_of
from graphwright.exceptions import ConfigurationError

if TYPE_CHECKING:
    from graphwright.agent import Agent
    from graphwright.orchestrator import OrchestratorBot
    from graphwright.runlog import RunLog, SQLiteRunLog

__all__ = ["BOT_GRAPH", "age_text", "bot_from", "existing_log", "log_of", "named_agent", "resuming_agent", "user_name"]

BOT_GRAPH = "orchestrator"
"""The name of the graph of every bot, in the run log."""

_STEPS = 50
_LOG_PARAMETERS = ("checkpointer", "runlog", "log")


def log_of(path: str | None) -> SQLiteRunLog:
    """Return the run log that `--log` names, or the user's own."""
    from graphwright.runlog import SQLiteRunLog

    return SQLiteRunLog(path)


def existing_log(path: str | None) -> SQLiteRunLog:
    """Return a run log whose file is there: looking at one must not make one.

    Raises:
        ConfigurationError: it is not there.
    """
    log = log_of(path)
    if not Path(log.path).is_file():
        raise ConfigurationError(f"there is no run log {str(log.path)!r} yet; name the file with --log PATH")
    return log


async def bot_from(options: argparse.Namespace, log: RunLog) -> OrchestratorBot:
    """Return the bot that the options describe; it plans, and it may ask."""
    from graphwright.orchestrator import OrchestratorBot

    model = model_of(needed_model(options))
    return OrchestratorBot(
        await model if inspect.isawaitable(model) else model,
        instructions=options.instructions or "",
        tools=tools_of(options),
        checkpointer=log,
        memory_path=str(Path(getattr(log, "path", Path.cwd() / "x")).parent / "memory"),
        enable_user_questions=True,
        enable_planning=True,
        recursion_limit=options.max_iterations or _STEPS,
    )


async def named_agent(text: str, log: RunLog) -> OrchestratorBot | Agent:
    """Return the bot or agent that `module:name` names; a factory with a parameter for the run log is given it.

    Raises:
        ConfigurationError: it is neither.
    """
    from graphwright.agent import Agent
    from graphwright.orchestrator import OrchestratorBot

    named = load_named(text, "agent")
    if not isinstance(named, (OrchestratorBot, Agent)) and callable(named):
        named = _made(named, text, log)
    if inspect.isawaitable(named):
        named = await named
    if not isinstance(named, (OrchestratorBot, Agent)):
        raise ConfigurationError(
            f"agent {text!r} is a {type(named).__name__}; "
            "name an OrchestratorBot, an agent, or a function that makes one"
        )
    return named


async def resuming_agent(options: argparse.Namespace, log: RunLog, graph: str) -> OrchestratorBot | Agent:
    """Return what goes on with a run of `graph`: the named agent, else one made from the options of `run`."""
    if options.agent is not None:
        return await named_agent(options.agent, log)
    if graph == BOT_GRAPH:
        return await bot_from(options, log)
    return await plan_of(options, runlog=log).build()


def _made(factory: Any, text: str, log: RunLog) -> Any:
    try:
        known: Mapping[str, Any] = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        known = {}
    given = {name: log for name in _LOG_PARAMETERS if name in known}
    try:
        return factory(**given)
    except ConfigurationError:
        raise
    except Exception as error:  # the user's own code
        raise ConfigurationError(f"agent {text!r}: calling it failed: {type(error).__name__}: {error}") from error


def user_name() -> str:
    """Return who answers, for the run log."""
    return next((os.environ[name] for name in ("LOGNAME", "USER", "USERNAME") if os.environ.get(name)), "cli")


def age_text(at: float) -> str:
    """Return how long ago a time is, in one unit."""
    seconds = max(0, int(time.time() - at))
    for length, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
