import asyncio

from graphwright import build_agent
from graphwright.conversations import InMemoryConversationStore
from graphwright.prompts import Block
from graphwright.prompts.flows import ConversationFlow, phase
from graphwright.testing import ScriptedModel, says


class Booking(ConversationFlow):
    blocks = (Block("who", "You book tables in a restaurant.", required=True),)
    library = (Block("wine", "Recommend a wine."),)

    @phase(blocks=[Block("day", "Ask for the day.")], to=["party"])
    def ask_day(self, message: str) -> str | None:
        if "Friday" not in message:
            return None
        self.data["day"] = "Friday"
        return "party"

    @phase("party", blocks=[Block("size", lambda seen: f"Ask how many people come on {seen['day']}.")])
    async def ask_party(self, message: str) -> None:
        if message.isdigit():
            self.activate("wine")


async def main() -> None:
    model = ScriptedModel([says("For which day?"), says("How many are you?"), says("A table for 4, with a Riesling.")])
    agent = await build_agent(
        model=model, flow=Booking, instructions="Be brief.", conversation_store=InMemoryConversationStore()
    )

    for message in ("A table, please.", "On Friday.", "4"):
        print(await agent.chat(message, session_id="s1", user_id="ann"))
    for messages in model.inputs:
        print(messages[0].content.split("\n\n"))


asyncio.run(main())
