import asyncio

from graphwright.engine import PromptGraph, PromptGraphEngine, PromptNode
from graphwright.engine.nodes import GuardNode, HumanNode, ParallelNode, RouterNode
from graphwright.testing import ScriptedModel, says


def no_promise(text: str) -> bool:
    return "guarantee" not in text


graph = PromptGraph("claims")
graph.add_node(RouterNode("sort", routes={"refund": "look", "other": "small_talk"}))
graph.add_node(ParallelNode("look", nodes=[PromptNode("policy"), PromptNode("history")], default_next="draft"))
graph.add_node(PromptNode("draft", default_next="check"))
graph.add_node(GuardNode("check", guards=[no_promise], on_pass="approve", on_fail="draft"))
graph.add_node(HumanNode("approve", prompt_template="Send the letter to {customer}?", timeout=60, on_deny="draft"))
graph.add_node(PromptNode("small_talk", default_next="__end__"))
graph.set_entry("sort")


async def ask(prompt: str, state: object) -> bool:
    print(prompt)
    return True


async def main() -> None:
    model = ScriptedModel(
        [
            says("refund"),
            says("Refunds are possible for 30 days."),
            says("The order is 12 days old."),
            says("We guarantee it."),
            says("You get your money back."),
        ]
    )
    engine = PromptGraphEngine(graph, model, human_handler=ask)
    result = await engine.ainvoke("My order is broken.", context={"customer": "Ada"})
    print(" -> ".join(result.report.nodes_visited))
    print(result.text)


asyncio.run(main())
