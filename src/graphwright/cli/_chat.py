"""The conversation of `chat`: goals in, what the agent does out, and forms for what it asks."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from graphwright._internal.ids import new_run_id
from graphwright.cli._agents import BOT_GRAPH, bot_from, log_of, named_agent
from graphwright.cli._chat_views import chat_view, plan_lines
from graphwright.cli._console import Console, InputCancelled, choose_console
from graphwright.cli._diagnostics import print_error
from graphwright.cli._driving import Driver, outcome_of
from graphwright.cli._exits import ANSWERED, INTERRUPTED, PAUSED, TERMINATED, exit_code_of
from graphwright.cli._forms import ask_for
from graphwright.cli._signals import note_termination, was_terminated
from graphwright.cli._text import one_line
from graphwright.cli._views import Outcome
from graphwright.exceptions import ConfigurationError, GraphwrightError, RunPausedError

if TYPE_CHECKING:
    from graphwright.interrupts import Interrupt
    from graphwright.orchestrator import OrchestratorBot
    from graphwright.runlog import RunLog

__all__ = ["Chat", "talk"]

_HELP = """\
/mode ask|auto|plan  how tools run from now on      /plan     the plan as it is
/resume              answer what the thread waits for  /abandon  give up the paused run
/new                 begin another thread            /quit     leave
Ctrl-C ends what is at work; a second one leaves."""

_OPEN = ("paused", "running")


async def talk(options: argparse.Namespace) -> int:
    """Talk until the user leaves, and return the exit code."""
    log = log_of(options.log)
    bot = None
    try:
        bot = await _bot_of(options, log)
        threads = bot.checkpointer
        thread = options.thread or (await _thread_to_resume(threads) if options.resume else None) or new_run_id()
        chat = Chat(bot, choose_console(), options, thread)
        return await chat.run()
    finally:
        if bot is not None:
            await bot.aclose()
        await log.aclose()


async def _bot_of(options: argparse.Namespace, log: RunLog) -> OrchestratorBot:
    from graphwright.orchestrator import OrchestratorBot

    if options.agent is None:
        return await bot_from(options, log)
    named = await named_agent(options.agent, log)
    if not isinstance(named, OrchestratorBot):
        raise ConfigurationError(f"agent {options.agent!r} is no OrchestratorBot; chat talks to these only")
    return named


async def _thread_to_resume(log: RunLog) -> str:
    for status in (*_OPEN, None):
        for run in await log.runs(owner=None, status=status, limit=50):  # type: ignore[arg-type]
            if run.graph == BOT_GRAPH:
                return run.thread_id
    raise ConfigurationError("there is no thread to go on with in the run log; leave --resume out to begin one")


class Chat:
    """One conversation at a terminal or in a pipe."""

    def __init__(self, bot: OrchestratorBot, console: Console, options: argparse.Namespace, thread: str) -> None:
        self._bot = bot
        self._console = console
        self._options = options
        self._thread = thread
        self._mode: str = options.mode
        self._driver: Driver | None = None
        self._asking: asyncio.Task[Any] | None = None
        self._aborting = False
        self._leaving = False
        self._main: asyncio.Task[Any] | None = None
        self._code = ANSWERED
        self._plan: list[dict[str, Any]] = []

    async def run(self) -> int:
        """Talk until the user leaves, and return the exit code: how the last goal ended."""
        self._main = asyncio.current_task()
        handled = self._handle_signals()
        try:
            await self._begin()
            await self._talk()
        except EOFError:
            pass
        except asyncio.CancelledError:
            code = TERMINATED if was_terminated() else INTERRUPTED
            self._say("terminated" if was_terminated() else "interrupted")
            self._code = code
        finally:
            for number in handled:
                asyncio.get_running_loop().remove_signal_handler(number)
        if self._code == PAUSED:
            log = f" --log {self._options.log}" if self._options.log else ""
            self._say(f"the run waits; go on with: graphwright chat --thread {self._thread}{log}")
        return self._code

    def interrupt(self) -> None:
        """End what is at work, or what is being typed; then leave, at the third time without waiting for anything."""
        if self._asking is not None:
            self._asking.cancel()
        elif self._driver is not None and not self._aborting:
            self._aborting = True
            self._driver.run.abort()
            self._driver.view.note("ending the run; Ctrl-C again leaves")
        elif self._leaving:  # what cleans up takes too long; the log outlives this, as it does a crash
            os._exit(INTERRUPTED)
        elif self._main is not None:
            self._leaving = True
            self._main.cancel()

    def terminate(self) -> None:
        """Leave, after what is at work has cleaned up."""
        note_termination()
        if self._main is not None:
            self._main.cancel()

    def _handle_signals(self) -> list[signal.Signals]:
        handled = []
        for number, handler in ((signal.SIGINT, self.interrupt), (signal.SIGTERM, self.terminate)):
            with suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread, or Windows
                asyncio.get_running_loop().add_signal_handler(number, handler)
                handled.append(number)
        return handled

    async def _begin(self) -> None:
        self._say(f"thread {self._thread}, mode {self._mode}; /help shows the commands")
        if not self._bot.checkpointer.durable:
            self._say("this agent keeps its threads in memory: they end with this command")
        latest = await self._bot.checkpointer.latest(self._thread)
        if latest is None:
            return
        self._say(f"this thread began with: {one_line(latest.title, 200)} ({latest.status})")
        if latest.status in _OPEN:
            await self._go_on()

    async def _talk(self) -> None:
        cancelled = False
        while True:
            try:
                text = await self._ask(self._console.ask("you>"))
            except InputCancelled:
                if cancelled:
                    self._code = INTERRUPTED
                    return
                cancelled = True
                self._say("Ctrl-C again leaves")
                continue
            cancelled = False
            if text == "/quit":
                return
            if text.startswith("/"):
                await self._command(*text.split(maxsplit=1))
            elif text:
                await self._turn(partial(self._bot.start, text, thread_id=self._thread, mode=self._mode))

    async def _command(self, name: str, argument: str = "") -> None:
        if name == "/mode" and argument in ("ask", "auto", "plan"):
            self._mode = argument
            self._say(f"mode {argument}")
        elif name == "/plan":
            self._say("\n".join(plan_lines(self._plan)) or "there is no plan")
        elif name == "/new":
            self._thread, self._plan = new_run_id(), []
            self._say(f"thread {self._thread}")
        elif name == "/resume":
            await self._go_on()
        elif name == "/abandon":
            await self._abandon()
        elif name == "/help":
            self._say(_HELP)
        else:
            self._say(f"{one_line(name)} is no command, or lacks something\n{_HELP}")

    async def _abandon(self) -> None:
        try:
            await self._bot.abandon(self._thread)
        except GraphwrightError as error:
            print_error(error, self._options)
        else:
            self._code = ANSWERED
            self._say("the run was given up; the thread takes a new goal")

    async def _go_on(self) -> None:
        await self._turn(lambda: self._bot.start(None, thread_id=self._thread))

    async def _turn(self, start: Callable[[], Any]) -> None:
        """Take one run to its end; what goes wrong in it is shown, and the talk goes on."""
        view = chat_view()
        self._aborting = False
        driver = self._driver = Driver(start, lambda: self._bot.start(None, thread_id=self._thread), view, self._answer)
        outcome = Outcome(status="aborted", exit_code=INTERRUPTED)
        try:
            response = await driver.to_end()
            outcome = outcome_of(response)
            self._plan = response.plan or self._plan
        except InputCancelled:
            outcome = Outcome(status="paused", exit_code=PAUSED)
        except EOFError:
            outcome = Outcome(status="paused", exit_code=PAUSED)
            raise
        except GraphwrightError as error:
            outcome = Outcome(status="failed", exit_code=exit_code_of(error), error=str(error))
            print_error(error, self._options)
            if isinstance(error, RunPausedError):
                self._say("/resume answers it, /abandon gives it up")
        finally:
            self._driver = None
            await driver.run.aclose()
            view.end(outcome)
            self._code = outcome.exit_code
        if outcome.status == "paused":
            self._say("the run stays paused: /resume answers it, /abandon gives it up")
        elif outcome.error and outcome.status not in ("failed", "completed"):
            self._say(outcome.error)

    async def _answer(self, item: Interrupt) -> Any:
        return await self._ask(ask_for(item, self._console, self._say))

    async def _ask(self, asking: Coroutine[Any, Any, Any]) -> Any:
        self._asking = asyncio.ensure_future(asking)
        try:
            return await self._asking
        except asyncio.CancelledError:
            assert self._main is not None
            if self._main.cancelling():
                raise
            raise InputCancelled from None
        finally:
            self._asking = None

    def _say(self, text: str) -> None:
        print(text, flush=True)
