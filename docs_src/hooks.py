import asyncio
from typing import Any

from graphwright import GraphState, PromptGraphEngine, ToolError
from graphwright.engine import build_react_graph
from graphwright.testing import ScriptedModel, calls, says


def transfer(amount: int) -> str:
    """Move money."""
    return f"moved {amount}, reference 4711"


class Cautious:
    """Caps what a transfer may move, and hides references from the model."""

    async def pre_tool(self, tool_name: str, args: dict[str, Any], state: GraphState) -> dict[str, Any] | None:
        if args["amount"] > 1000:
            raise ToolError("a transfer of more than 1000 needs a person")
        return None

    async def post_tool(self, tool_name: str, result: Any, args: dict[str, Any], state: GraphState) -> Any:
        return str(result).split(", reference")[0]


async def main() -> None:
    model = ScriptedModel([calls("transfer", amount=5000), calls("transfer", amount=900), says("900 were moved.")])
    engine = PromptGraphEngine(build_react_graph(), model, tools=[transfer], hooks=[Cautious()])
    result = await engine.ainvoke("Move 5000, or as much as you may.")
    for message in result.messages:
        if message.type == "tool":
            print(message.status, "|", message.content)
    print(result.text)


asyncio.run(main())
