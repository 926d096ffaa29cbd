import asyncio

from pydantic import BaseModel

from graphwright import build_agent
from graphwright.testing import ScriptedModel, says


class Price(BaseModel):
    fruit: str
    euros: float


async def main() -> None:
    model = ScriptedModel([says('{"fruit": "mango", "euros": "a lot"}'), says('{"fruit": "mango", "euros": 1.9}')])
    agent = await build_agent(model=model, output_schema=Price)

    result = await agent.ainvoke("What does a mango cost?")

    print(repr(result.output))
    print(result.messages[2].content)


asyncio.run(main())
