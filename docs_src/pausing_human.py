import asyncio

from graphwright import PromptGraph, PromptNode, build_agent
from graphwright.engine.nodes import HumanNode
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, says


async def main() -> None:
    graph = PromptGraph("letter")
    graph.add_node(PromptNode("draft", instructions="Draft the letter."))
    graph.add_node(HumanNode("review", prompt_template="May this go out?", on_approve="send", on_deny="draft"))
    graph.add_node(PromptNode("send", instructions="Say that it is sent."))
    graph.always("draft", "review")
    graph.always("send", "__end__")
    graph.set_entry("draft")
    model = ScriptedModel([says("Dear Ann"), says("Dear Ann, warmly"), says("It is sent.")])
    agent = await build_agent(model=model, agent_pattern=graph, runlog=MemoryRunLog())

    run = agent.start("Write to Ann.")
    await run.result()
    for decision in (False, True):
        item = run.pending[0]
        print(item.kind, "->", decision)
        await run.answer(item.id, decision, by="carol")
        result = await run.result()
    print(result.status, "|", result.text)


asyncio.run(main())
