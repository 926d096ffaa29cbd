"""Give every tool a name that every provider takes, and that is the same in every process."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable

__all__ = ["offered_names", "valid_name"]

_LONGEST = 64
_DIGITS = 8


def valid_name(text: str, *, unique: str = "") -> str:
    """Return `text` as a name of letters, digits, `_` and `-` that does not begin with a digit or `-`.

    What has to be cut, and what is given something to be `unique` by, ends with a digest.
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", text) or "tool"
    if not (name[0].isalpha() or name[0] == "_"):
        name = f"_{name}"
    if len(name) <= _LONGEST and not unique:
        return name
    digest = hashlib.sha256((unique or text).encode()).hexdigest()[:_DIGITS]
    return f"{name[: _LONGEST - _DIGITS - 1]}_{digest}"


def offered_names(tools: Iterable[tuple[str, str]], *, taken: Collection[str] = ()) -> dict[tuple[str, str], str]:
    """Return the name that is offered for each (server, tool).

    It is the tool's own name where that is valid and nobody else's. Of a name on several servers, or one that is
    `taken`, each gets its server's name in front. What is still not unique gets a digest of server and tool.
    """
    pairs = list(dict.fromkeys(tools))
    plain = {pair: valid_name(pair[1]) for pair in pairs}
    owners = {name: {pair[0] for pair in pairs if plain[pair] == name} for name in set(plain.values())}
    names = {
        pair: valid_name(f"{pair[0]}_{pair[1]}") if len(owners[name]) > 1 or name in taken else name
        for pair, name in plain.items()
    }
    used = Counter(names.values())
    kept: set[str] = set(taken)
    offered = {}
    # Who is called exactly so has the first right to a name.
    for pair in sorted(pairs, key=lambda pair: (names[pair] != pair[1], pair)):
        name = names[pair]
        if name in kept or (used[name] > 1 and name != pair[1]):
            name = valid_name(name, unique=f"{pair[0]}\0{pair[1]}")
        kept.add(name)
        offered[pair] = name
    return {pair: offered[pair] for pair in pairs}
