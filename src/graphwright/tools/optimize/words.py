"""Turn names and sentences into the words that a search compares: split, lower case, without endings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

__all__ = ["meant_by", "related", "stem", "words_of"]

_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+")

# Words that say nothing of what a tool is to do.
_SILENT_WORDS = """
    a about after again all already also always am an and any anybody anyone anything anywhere are as at be because
    been before being but by can could did do does doing done each either else ever every everybody everyone
    everything everywhere few for from get give go good got had has have he hello her here hi him his how i if in
    instead into is it its itself just keep know last let like look lot made make many may maybe me mine more most
    much must my need never new no not nothing now of off often ok on once one only or other our out over own per
    perhaps please put quite rather really right same see she should show since so some somebody someone something
    soon still such take tell than thank thanks that the their them then there these they thing this those through
    to today together too two until up us use used using very via want was way we well were what when where whether
    which while who whole whom whose why will with within without would yes yet you your
"""
_SILENT = frozenset(_SILENT_WORDS.split())

# Words that people and the authors of tools use for the same thing, whatever the tool is about.
_GROUPS = """
    delete remove erase drop discard purge destroy forget
    create make new insert
    add append attach insert
    update change modify edit alter replace
    send post publish
    find search lookup query locate
    list enumerate
    read open view
    run execute
    pick choose select dropdown option
    allow permit restrict limit validation
    picture image photo png jpg jpeg svg
    screenshot capture
    folder directory
    file document
    message chat
    comment remark
    repository repo project
    pr pull
    mr merge
    history log past
    change commit diff
    console log print output
    error failure bug issue problem
    chart graph plot
    diagram drawing draw
    sheet spreadsheet worksheet workbook excel
    column field
    row record
    table grid
    email mail
    url link website site web
    page tab
    person people user member
    colour color
    stop halt cancel
    begin start launch
    rename move
    copy duplicate
    combine merge join
    count number
    size big large
    database db
    address street location place
    travel drive driver trip journey distance route way directions
    remember memory knowledge forget
    team workspace
    highlight color format red green
    score audit rating
    announce post
    summary summarize
    forecast weather
    meeting event appointment calendar
    price cost amount
"""
_PHRASES = {
    "how many": "count number",
    "when is": "time date",
    "who is": "user profile",
    "who are": "list user",
    "tell the": "send post message",
    "search engine": "seo",
    "how long": "time duration",
    "how far": "distance",
    "how much": "amount",
    "up to date": "update latest",
    "get rid of": "remove",
    "look up": "search",
    "look for": "search",
    "sign in": "login",
    "log in": "login",
}
_SHAPES = (
    (re.compile(r"\bhttps?://\S+"), "url web page"),
    (re.compile(r"\b[\w-]+\.[a-z]{2,4}\b(?![./:@\w])"), "file"),
)
"""What a text of some form stands for."""


def words_of(text: str) -> Iterator[str]:
    """Yield the stems of the words that mean something, those of `snake_case` and `camelCase` names included."""
    for word in _PARTS.findall(text):
        lower = word.lower()
        if lower not in _SILENT and len(lower) > 1 and not lower.isdigit():
            yield stem(lower)


def meant_by(request: str) -> str:
    """Return a request with words added that say plainly what it means: `how many` asks for a `count`."""
    lower = request.lower()
    added = [words for phrase, words in _PHRASES.items() if phrase in lower]
    added += [words for shape, words in _SHAPES if shape.search(lower)]
    return " ".join([request, *added])


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return a word in lower case without its commonest English endings."""
    if len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        cut = word[: -len(ending)]
        if word.endswith(ending) and len(cut) > 2 and re.search("[aeiouy]", cut):
            word = cut[:-1] if len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "lsz" else cut
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def related(word: str) -> frozenset[str]:
    """Return the stems that mean about the same as a stem, without itself."""
    return _related().get(word, frozenset())


@lru_cache(maxsize=1)
def _related() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _GROUPS.split("\n"):
        group = {stem(word) for word in line.split()}
        for word in group:
            found.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in found.items()}
