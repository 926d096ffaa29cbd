import asyncio

from graphwright import GraphIterationLimitError, build_agent
from graphwright.testing import ScriptedModel, calls


def look() -> str:
    """Look again."""
    return "nothing yet"


async def main() -> None:
    model = ScriptedModel.answering(lambda messages: calls("look"))
    agent = await build_agent(model=model, extra_tools=[look], max_agent_iterations=3)
    try:
        await agent.ainvoke("Wait for something to happen.")
    except GraphIterationLimitError as error:
        print("limit:", error.limit, "unseen results of:", error.pending_tools)
        print("kept:", [message.type for message in error.messages])
        print("tool calls:", error.report.tool_calls)


asyncio.run(main())
