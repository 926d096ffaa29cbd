import asyncio

from graphwright import CallerContext, build_agent
from graphwright.cache import SemanticCache
from graphwright.testing import ScriptedModel


def answer(messages):
    return f"answer {len(model.requests)}"


model = ScriptedModel.answering(answer)


async def main() -> None:
    cache = SemanticCache(default_ttl=600, ttl_patterns={r"\b(today|now)\b": 0})
    agent = await build_agent(model=model, cache=cache)
    ada, bob = CallerContext(user_id="ada"), CallerContext(user_id="bob")

    for caller in (ada, ada, bob):
        result = await agent.ainvoke("When do you open?", caller=caller)
        print(caller.user_id, result.text, result.cache_hit)

    print(await agent.purge_user("ada"))
    result = await agent.ainvoke("When do you open?", caller=ada)
    print(result.text, result.cache_hit)


asyncio.run(main())
