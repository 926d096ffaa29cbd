import asyncio

from graphwright.engine import PromptNode
from graphwright.engine.prompt_inspector import inspect_prompt
from graphwright.prompts import Block, BlockSet, ChainOfThought, Critic
from graphwright.testing import ScriptedModel

house = BlockSet(
    [
        Block("rules", "Never promise a date.", required=True),
        Block("customer", lambda context: f"You talk to {context['user']}.", when=lambda context: "user" in context),
        Block("history", "The firm was founded in 1921. " * 20, priority=1),
    ],
    max_tokens=100,
)
node = PromptNode(
    "answer", instructions="Answer the customer.", blocks=[house], strategy=ChainOfThought(), perspective=Critic()
)


async def main() -> None:
    print(house.select({"user": "Ann"}).dropped)
    print(await inspect_prompt(node, "When will it be ready?", model=ScriptedModel(), context={"user": "Ann"}))


asyncio.run(main())
