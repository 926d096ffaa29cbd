import asyncio

from graphwright import build_agent, text_of, tool
from graphwright.testing import ScriptedModel, calls, says

ROOMS = ["kitchen", "bedroom", "bathroom", "garage", "cellar", "attic"]


def tools_of(room: str) -> list:
    async def light(on: bool) -> str:
        return f"The light in the {room} is {'on' if on else 'off'}."

    async def heat(degrees: int) -> str:
        return f"The {room} will have {degrees} degrees."

    return [
        tool(light, name=f"{room}_light", description=f"Switch the light in the {room}."),
        tool(heat, name=f"{room}_heating", description=f"Set the temperature of the {room}."),
    ]


async def main() -> None:
    model = ScriptedModel(
        [
            calls("kitchen_light", on=True),
            calls("request_more_tools", query="heat the attic"),
            calls("attic_heating", degrees=21),
            says("Done."),
        ]
    )
    agent = await build_agent(
        model=model,
        extra_tools=[each for room in ROOMS for each in tools_of(room)],
        optimize_tools={"level": "semantic", "semantic_top_k": 2},
    )
    result = await agent.ainvoke("It is too dark in the kitchen.")

    for request in model.requests:
        print(*(spec.name for spec in request.tools))
    print(text_of(result))


asyncio.run(main())
