import asyncio
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from graphwright import ToolError, build_agent, text_of, tool
from graphwright.testing import ScriptedModel, calls, says


class Address(BaseModel):
    city: str
    zip_code: Annotated[str, Field(pattern=r"^\d{5}$")]


@tool(timeout=10)
async def ship(item: str, to: Address, speed: Literal["slow", "fast"] = "slow") -> dict[str, str]:
    """Ship one item.

    Args:
        item: What to ship.
        speed: How fast it has to be there.
    """
    if item == "piano":
        raise ToolError("a piano does not fit into a parcel")
    return {"item": item, "city": to.city, "speed": speed}


async def main() -> None:
    model = ScriptedModel(
        [
            calls("ship", item="book", to={"city": "Ulm", "zip_code": "123"}),
            calls("ship", item="piano", to={"city": "Ulm", "zip_code": "89073"}),
            calls("ship", item="book", to={"city": "Ulm", "zip_code": "89073"}),
            says("The book is on its way."),
        ]
    )
    agent = await build_agent(model=model, extra_tools=[ship])
    result = await agent.ainvoke("Send something to Ulm.")
    for message in result["messages"][2:]:
        if text_of(message):
            print(f"{message.type}: {text_of(message)}")


asyncio.run(main())
