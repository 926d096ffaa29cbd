import asyncio

from graphwright import CallerContext, ContextEngine, build_agent, get_current_caller
from graphwright.testing import ScriptedModel, says

ORDERS = {"ann": "two mangoes, paid", "bob": "one melon, open"}


def order(seen: dict) -> str:
    caller = get_current_caller()
    return ORDERS.get(caller.user_id, "") if caller else ""


context = ContextEngine(model_context_window=600, response_reserve=100)
context.add_layer("Order of the customer", content=order, priority=9)
context.add_layer("Terms", content="Fruit is not taken back. " * 60, priority=2)
context.add_layer("Day", content=lambda seen: seen.get("day", ""))


async def main() -> None:
    model = ScriptedModel([says("Yours is paid.")])
    agent = await build_agent(model=model, instructions="Answer customers.", context_engine=context)

    await agent.ainvoke("Did I pay?", caller=CallerContext(user_id="ann"), context={"day": "Friday"})

    print(model.inputs[0][0].content.replace("Fruit is not taken back. ", "."))
    report = context.get_report()
    print("cut:", report.cut)
    for layer in report.layers:
        print(f"{layer.name}: {layer.shown_tokens} of {layer.tokens} tokens")
    print(report.conversation, "tokens are left for the conversation")


asyncio.run(main())
