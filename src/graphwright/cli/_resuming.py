"""Go on with a run of the log, with answers from the command line or from whoever sits at the terminal."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphwright.cli._agents import resuming_agent, user_name
from graphwright.cli._console import InputCancelled, choose_console
from graphwright.cli._driving import Driver, Unanswered, outcome_of
from graphwright.cli._exits import INTERRUPTED, PAUSED, exit_code_of
from graphwright.cli._forms import ask_for, lines_of
from graphwright.cli._views import Outcome, View, choose_view
from graphwright.exceptions import ConfigurationError, InterruptError
from graphwright.interrupts import APPROVAL, HUMAN, QUESTION, Interrupt

if TYPE_CHECKING:
    from graphwright.runlog import RunInfo, RunLog
    from graphwright.runtime import Run

__all__ = ["given_answers", "resume"]


async def resume(options: argparse.Namespace, log: RunLog, info: RunInfo) -> int:
    """Go on with a run, show it, and return the exit code."""
    from graphwright.agent import Agent
    from graphwright.runtime.history import has_ended, is_expired, pending_of

    rows = await log.rows(info.run_id)
    if has_ended(rows):
        raise InterruptError(f"run {info.run_id} has ended ({info.status}), so there is nothing to go on with")
    pending = [item for item in pending_of(rows) if not is_expired(item)]
    answers = given_answers(options, pending)
    interactive = sys.stdin.isatty() and not options.json and not options.quiet
    view = choose_view(json=options.json, quiet=options.quiet)
    if not interactive and any(item.id not in answers for item in pending):
        _show_pending(view, [item for item in pending if item.id not in answers], info, options)
        view.end(Outcome(status="paused", exit_code=PAUSED, error="the run waits for answers"))
        return PAUSED
    agent = await resuming_agent(options, log, info.graph)
    try:
        return await _drive(agent, info, view, options, _Answers(answers, view, interactive=interactive))
    finally:
        await (agent.shutdown() if isinstance(agent, Agent) else agent.aclose())


def given_answers(options: argparse.Namespace, pending: Sequence[Interrupt]) -> dict[str, Any]:
    """Return the answers of the command line by the id of what waits.

    `--answer` names a pending item, or a question of the one that asks questions.

    Raises:
        ConfigurationError: an answer is no JSON, or names nothing that waits.
    """
    answers: dict[str, Any] = {}
    for item in pending:
        if item.kind in (APPROVAL, HUMAN) and options.approve:
            answers[item.id] = True
        elif item.kind in (APPROVAL, HUMAN) and options.deny is not None:
            answers[item.id] = {"approved": False, **({"feedback": options.deny} if options.deny else {})}
    for text in options.answer:
        name, found, written = text.partition("=")
        if not found:
            raise ConfigurationError(f"--answer {text!r} is no ID=JSON; write for example color='\"red\"'")
        try:
            value = json.loads(written)
        except ValueError as error:
            raise ConfigurationError(f"--answer {text!r}: {error}; a text has to be in double quotes") from None
        _put(answers, name, value, pending)
    return answers


def _put(answers: dict[str, Any], name: str, value: Any, pending: Sequence[Interrupt]) -> None:
    if any(item.id == name for item in pending):
        answers[name] = value
        return
    asking = [item for item in pending if item.kind == QUESTION and name in _question_ids(item)]
    if len(asking) != 1:
        known = ", ".join(item.id for item in pending) or "nothing"
        raise ConfigurationError(f"the run does not wait for {name!r}; it waits for {known}")
    answers.setdefault(asking[0].id, {})[name] = value


def _question_ids(item: Interrupt) -> list[str]:
    return [question["id"] for question in item.value.get("questions", ()) if isinstance(question, Mapping)]


class _Answers:
    """Gives each answer of the command line once; what it lacks is asked for at the terminal."""

    def __init__(self, answers: dict[str, Any], view: View, *, interactive: bool) -> None:
        self._answers = answers
        self._view = view
        self._console = choose_console() if interactive else None

    async def __call__(self, item: Interrupt) -> Any:
        if item.id in self._answers:
            return self._answers.pop(item.id)
        if self._console is None:
            raise Unanswered
        return await ask_for(item, self._console, self._view.note)


async def _drive(agent: Any, info: RunInfo, view: View, options: argparse.Namespace, ask: _Answers) -> int:
    def go_on() -> Run:
        from graphwright.agent import Agent
        from graphwright.runtime import Resume

        run: Run
        if isinstance(agent, Agent):
            run = agent.start(None, resume=Resume(run_id=info.run_id, by=user_name()))
        else:
            run = agent.start(None, thread_id=info.thread_id)
        return run

    driver = Driver(go_on, go_on, view, ask)
    outcome = Outcome(status="aborted", exit_code=INTERRUPTED)
    try:
        outcome = outcome_of(await driver.to_end())
    except (Unanswered, InputCancelled, EOFError):
        outcome = Outcome(status="paused", exit_code=PAUSED, error="the run waits for answers")
        _show_pending(view, driver.run.pending, info, options)
    except Exception as error:  # shown here, explained by `main`
        outcome = Outcome(status="failed", exit_code=exit_code_of(error), error=str(error))
        if isinstance(error, InterruptError) and driver.run.pending:
            outcome = Outcome(status="paused", exit_code=PAUSED, error=str(error))
        raise
    finally:
        await driver.run.aclose()
        view.end(outcome)
    return outcome.exit_code


def _show_pending(view: View, pending: Sequence[Interrupt], info: RunInfo, options: argparse.Namespace) -> None:
    for item in pending:
        for line in lines_of(item):
            view.note(line)
    log = f" --log {options.log}" if options.log else ""
    view.note(f"go on with: graphwright runs resume {info.run_id}{log}, and --approve, --deny, or --answer ID=JSON")
