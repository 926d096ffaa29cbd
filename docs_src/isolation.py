import asyncio

from graphwright import build_agent
from graphwright.cache import SemanticCache
from graphwright.conversations import InMemoryConversationStore
from graphwright.runlog import MemoryRunLog
from graphwright.testing.contracts import isolation


async def make_agent(model):
    return await build_agent(
        model=model,
        conversation_store=InMemoryConversationStore(),
        runlog=MemoryRunLog(),
        cache=SemanticCache(),
    )


async def main() -> None:
    await isolation(make_agent)
    print("neither has seen anything of the other")

    async def careless(model):
        return await build_agent(model=model, cache=SemanticCache(scope="shared", shared_data_acknowledged=True))

    try:
        await isolation(careless)
    except AssertionError as leak:
        print(str(leak).partition(":")[0])


asyncio.run(main())
