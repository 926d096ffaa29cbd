import asyncio

from graphwright import build_agent
from graphwright.messages import AIMessage, text_of
from graphwright.models import ModelCapabilities, ModelRequest


class Parrot:
    """A model is a name, what it can do, and one coroutine."""

    name = "parrot"
    capabilities = ModelCapabilities(tools=False, streaming=False)

    async def complete(self, request: ModelRequest) -> AIMessage:
        return AIMessage(content=text_of(request.messages[-1]).upper())


async def main() -> None:
    agent = await build_agent(model=Parrot())
    print((await agent.ainvoke("hello")).text)


asyncio.run(main())
