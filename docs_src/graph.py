import asyncio

from graphwright import GraphState, PromptGraph, PromptGraphEngine, PromptNode, node, text_of
from graphwright.testing import ScriptedModel, says


@node("count", is_entry=True)
async def count(state: GraphState) -> dict[str, int]:
    """Count the words of the question."""
    words = len(text_of(state.messages[-1]).split())
    state.context["words"] = words
    return {"words": words}


graph = PromptGraph("editor", nodes=[count])
graph.add_node(PromptNode("polish", instructions="Shorten the text.", input_keys=["words"]))
graph.add_node(PromptNode("apologise", instructions="Say that the text is too long."))
graph.when("count", "apologise", lambda result: result.output["words"] > 100, label="too long")
graph.always("count", "polish")
graph.always("polish", "__end__").always("apologise", "__end__")


async def main() -> None:
    print(graph.describe())
    print("problems:", graph.validate())
    engine = PromptGraphEngine(graph, ScriptedModel([says("Rain.")]))
    result = await engine.ainvoke("It is raining again today.")
    print(result.text, result.context["words"], result.report.nodes_visited)


asyncio.run(main())
