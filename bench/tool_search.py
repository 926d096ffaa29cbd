"""How well a search finds the right tool among those of 24 real servers, and how many tokens a selection saves.

Run it as `python bench/tool_search.py`, with `src` in the path. With `sentence-transformers` and a model folder
(`--embed FOLDER`) it measures the search by meaning, too. `--part tuning` leaves the other requests alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from graphwright import build_agent
from graphwright.models.base import Embedder
from graphwright.testing import ScriptedModel, says
from graphwright.tools import Tool, ToolOptimizationConfig, ToolSelector, ToolSet
from graphwright.types import ToolSpec

DATA = Path(__file__).parents[1] / "tests" / "data"
FIRST = 8
PARTS = ("tuning", "final", "fresh")
CHARS_PER_TOKEN = 4


class ListedTool(Tool):
    """A tool of which there is only the entry in its server's list."""

    def __init__(self, server: str, entry: dict[str, Any], name: str) -> None:
        self.spec = ToolSpec(name=name, description=entry.get("description") or "", parameters=entry["inputSchema"])
        self.source = server

    def validate(self, args: dict[str, Any]) -> dict[str, Any]:
        return args


def listed_tools() -> dict[str, ListedTool]:
    """Return every tool by `server/name`. A name that two servers have gets the server's in front."""
    files = sorted(path for folder in ("mcp_tools", "mcp_tools_more") for path in (DATA / folder).glob("*.json"))
    lists = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    entries = [(each["_origin"]["server"], entry) for each in lists for entry in each["tools"]]
    names = [entry["name"] for _, entry in entries]
    return {
        f"{server}/{entry['name']}": ListedTool(
            server, entry, f"{server}_{entry['name']}" if names.count(entry["name"]) > 1 else entry["name"]
        )
        for server, entry in entries
    }


async def misses(
    requests: Iterable[dict[str, Any]], tools: dict[str, ListedTool], embedder: Embedder | None
) -> list[str]:
    """Return a line for each request of which no right tool is among the first."""
    selector = ToolSelector(ToolOptimizationConfig(level="semantic", semantic_top_k=FIRST, embedding_model=embedder))
    everything = ToolSet(tools.values())
    missed = []
    for each in requests:
        chosen = await selector.ranked(each["request"], everything)
        if not any(tools[answer].name in chosen[:FIRST] for answer in each["answers"]):
            missed.append(f"{each['request']} -> {each['answers']}; got {', '.join(chosen[:FIRST])}")
    return missed


async def tokens_at(request: str, tools: dict[str, ListedTool]) -> tuple[int, int]:
    """Return about how many tokens the tools take at a request: all of them as they are, and the selected ones."""
    model = ScriptedModel([says("Hello.")])
    agent = await build_agent(model=model, extra_tools=tools.values(), optimize_tools="semantic")
    await agent.ainvoke(request)
    return _tokens(ToolSet(tools.values()).specs), _tokens(model.requests[0].tools)


def _tokens(specs: Sequence[ToolSpec]) -> int:
    shown = [{"name": each.name, "description": each.description, "parameters": each.parameters} for each in specs]
    return len(json.dumps(shown, separators=(",", ":"), ensure_ascii=False)) // CHARS_PER_TOKEN


class _SentenceTransformer:
    def __init__(self, folder: str) -> None:
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(folder)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return self._model.encode(list(texts)).tolist()  # type: ignore[no-any-return]


async def main(arguments: argparse.Namespace) -> int:
    tools = listed_tools()
    requests = json.loads((DATA / "tool_requests.json").read_text(encoding="utf-8"))["requests"]
    searches: dict[str, Embedder | None] = {"BM25": None}
    if arguments.embed:
        searches["embeddings"] = _SentenceTransformer(arguments.embed)
    for half in PARTS if arguments.part == "all" else (arguments.part,):
        asked = [each for each in requests if each["half"] == half]
        for name, embedder in searches.items():
            missed = await misses(asked, tools, embedder)
            found = len(asked) - len(missed)
            print(f"{name}, {half} part: {found} of {len(asked)} in the first {FIRST} ({found / len(asked):.0%})")
            for line in missed:
                print(f"  missed: {line}")
    for request in ("hello", "What time is it in Tokyo right now?"):
        before, after = await tokens_at(request, tools)
        print(f"{request!r} with {len(tools)} tools: about {before} tokens -> {after} ({1 - after / before:.1%} less)")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embed", default="", help="folder of a sentence-transformers model")
    parser.add_argument("--part", choices=(*PARTS, "all"), default="all")
    sys.exit(asyncio.run(main(parser.parse_args())))
