import asyncio

from graphwright import CallerContext, build_agent, get_current_caller, text_of
from graphwright.testing import ScriptedModel, calls, says


def my_orders() -> list[str]:
    """List the orders of whoever asks."""
    caller = get_current_caller()
    orders = {"acme::ada": ["lamp"], "acme::bob": ["desk", "chair"]}
    return orders[caller.isolation_key]


async def main() -> None:
    for user in ("ada", "bob"):
        model = ScriptedModel([calls("my_orders"), says("There they are.")])
        agent = await build_agent(model=model, extra_tools=[my_orders])
        caller = CallerContext(user_id=user, tenant_id="acme")
        result = await agent.ainvoke("What did I order?", caller=caller)
        print(user, text_of(result["messages"][-2]))


asyncio.run(main())
