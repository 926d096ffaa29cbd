"""A console that shows the questions of a bot, takes typed answers, and goes on with the run.

    python examples/ask_user_console.py
    python examples/ask_user_console.py --model openai:gpt-5-mini "Plan a weekend in the mountains for me."

Without `--model` a scripted model plays, so no key is needed. With `--log runs.db --thread trip` the run outlives this
process: leave with Ctrl-D at a question, and go on with the same command without a goal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from graphwright import OrchestratorBot
from graphwright.exceptions import GraphwrightError, InterruptError
from graphwright.testing import ScriptedModel, calls, says

LEFT_PAUSED = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run the console and return its exit code: 0 for an answer, 1 for none, 3 when questions stay open."""
    options = parser().parse_args(argv)
    scripted = options.model is None
    bot = OrchestratorBot(
        strong_model=ScriptedModel.answering(play) if scripted else options.model,
        instructions="You plan trips. Ask the user for what you need to know before you book anything.",
        tools=[book],
        enable_user_questions=True,
        checkpointer=options.log,
    )
    goal: str | None = " ".join(options.goal)
    if not goal:
        goal = None if options.log and options.thread else "Plan my trip."
    thread = options.thread or "console"
    # One event loop for all legs of the run; nothing is at work in it while a person thinks.
    with asyncio.Runner() as runner:
        try:
            while True:
                try:
                    waiting = runner.run(one_leg(bot, goal, thread))
                except InterruptError as error:
                    print(f"! {error}")
                    waiting = list(bot.graph.get_state({"configurable": {"thread_id": thread}}).interrupts)
                    if not waiting:
                        return 1
                if not waiting:
                    return 0
                bot.set_resume_command({item.id: answer_to(item) for item in waiting}, thread_id=thread)
                goal = None
        except (EOFError, KeyboardInterrupt):
            print(f"\nThe run is paused on the thread {thread!r}.")
            return LEFT_PAUSED
        except GraphwrightError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        finally:
            runner.run(bot.aclose())


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(description="Let a bot ask you, and go on with your answers.")
    made.add_argument("goal", nargs="*", help="what the bot is to do; with a log and a thread, none goes on with it")
    made.add_argument("--model", help="such as openai:gpt-5-mini; a scripted model plays without it")
    made.add_argument("--thread", help="the name of the conversation")
    made.add_argument("--log", help="the file that keeps the run while nobody is at it")
    return made


async def one_leg(bot: OrchestratorBot, goal: str | None, thread: str) -> list[Any]:
    """Run until the end or the next pause, show what happens, and return what the run waits for."""
    waiting: list[Any] = []
    async for mode, payload in bot.astream_events(goal, mode="ask", thread_id=thread):
        if mode != "updates":
            continue
        waiting += payload.get("__interrupt__", ())
        for record in payload.get("tools", {}).get("tools_executed", ()):
            print(f"[{record['tool_name']}: {record['status']}] {record['output']}")
        update = payload.get("agent", {})
        for text in update.get("partial_responses", ()):
            print(text)
        if update.get("final_report"):
            print(f"\n{update['final_report']}")
    return waiting


def answer_to(item: Any) -> Any:
    """Ask the person at the console what one interrupt asks, and return the answer."""
    if item.kind == "approval":
        print(f"\nMay {item.value['tool']} run with {item.value['params']}?")
        return ask("yes or no", read_boolean, required=True)
    if item.value.get("reason"):
        print(f"\n{item.value['reason']}")
    given = {question["id"]: answer_question(question) for question in item.value["questions"]}
    return {key: value for key, value in given.items() if value is not None}


def answer_question(question: dict[str, Any]) -> Any:
    """Show one question, and return a typed answer, or `None` for none."""
    print(f"\n{question['text']}" + ("" if question["required"] else " (may be left empty)"))
    options = question.get("options") or ()
    for number, option in enumerate(options, 1):
        print(f"  {number}. {option['label']}")
    kinds: dict[str, tuple[str, Callable[[str], Any]]] = {
        "text": ("", str),
        "boolean": ("yes or no", read_boolean),
        "number": ("a number", read_number),
        "single_choice": ("one number", lambda text: pick(options, text)),
        "multi_choice": ("numbers with commas", lambda text: [pick(options, part) for part in text.split(",")]),
    }
    hint, reader = kinds[question["type"]]
    return ask(hint, reader, required=question["required"])


def ask(hint: str, reader: Callable[[str], Any], *, required: bool) -> Any:
    """Read lines until one can be read as an answer."""
    while True:
        text = input(f"{hint}> ".lstrip()).strip()
        if not text and not required:
            return None
        try:
            if text:
                return reader(text)
        except ValueError as error:
            print(f"! {error}")


def read_boolean(text: str) -> bool:
    """Return what a yes or a no means."""
    known = {"yes": True, "y": True, "no": False, "n": False}
    if text.lower() not in known:
        raise ValueError(f"{text!r} is neither yes nor no")
    return known[text.lower()]


def read_number(text: str) -> float:
    """Return a number, whole where it is written so."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None


def pick(options: Sequence[dict[str, str]], text: str) -> str:
    """Return the value of the option with a number."""
    number = text.strip()
    if not number.isdigit() or not 1 <= int(number) <= len(options):
        raise ValueError(f"{number!r} is none of the numbers 1 to {len(options)}")
    return options[int(number) - 1]["value"]


def book(place: str, nights: int) -> str:
    """Book a hut."""
    return f"a hut in {place} for {nights} nights"


def play(messages: Sequence[Any]) -> Any:
    """Answer as a model would: ask, then book, then tell."""
    results = [message.text for message in messages if message.type == "tool"]
    if not results:
        place = [{"value": "oslo", "label": "Oslo"}, {"value": "bergen", "label": "Bergen"}]
        wishes = [{"value": "sauna", "label": "A sauna"}, {"value": "boat", "label": "A boat"}]
        questions = [
            {"id": "place", "text": "Where to?", "type": "single_choice", "options": place},
            {"id": "nights", "text": "How many nights?", "type": "number"},
            {
                "id": "wishes",
                "text": "What would be nice?",
                "type": "multi_choice",
                "options": wishes,
                "required": False,
            },
            {"id": "dog", "text": "Does a dog come along?", "type": "boolean"},
            {"id": "note", "text": "Anything else?", "type": "text", "required": False},
        ]
        return calls("ask_user", questions=questions, reason="I need to know a few things first.")
    answers = json.loads(results[0].partition(": ")[2])
    if len(results) == 1:
        return calls("book", place=answers["place"], nights=answers["nights"])
    return says(f"The booking: {results[1]}\nYou told me: {json.dumps(answers)}")


if __name__ == "__main__":
    sys.exit(main())
