import asyncio

from graphwright.engine import NodeFlag, PromptGraph, PromptGraphEngine, PromptNode
from graphwright.testing import ScriptedModel, says

graph = PromptGraph(
    "report",
    nodes=[
        PromptNode("gather", flags={NodeFlag.ENTRY, NodeFlag.SUMMARIZE_OUTPUT}),
        PromptNode("write", flags={NodeFlag.LIGHTWEIGHT, NodeFlag.NO_HISTORY}, inherit_context_from="gather"),
    ],
).sequential("gather", "write")


async def main() -> None:
    model = ScriptedModel([says("finding " * 200), says("Three findings.")])
    small = ScriptedModel([says("The report.")])
    result = await PromptGraphEngine(graph, model, lightweight_model=small).ainvoke("Write a report.")
    print(result.context["gather_output"])
    print(result.text)


asyncio.run(main())
