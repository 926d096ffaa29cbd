import asyncio

from graphwright import CallerContext, build_agent
from graphwright.memory import InMemoryProvider
from graphwright.testing import ScriptedModel, says

model = ScriptedModel([says("Noted."), says("Green tea."), says("I do not know.")])


async def main() -> None:
    ada, bob = CallerContext(user_id="ada"), CallerContext(user_id="bob")
    async with await build_agent(model=model, memory=InMemoryProvider(), memory_auto_store=True) as agent:
        await agent.ainvoke("I like green tea", caller=ada)
        for caller in (ada, bob):
            await agent.ainvoke("Which tea do I like?", caller=caller)

    for messages in model.inputs[1:]:
        print("green tea" in str(messages[0].content))


asyncio.run(main())
