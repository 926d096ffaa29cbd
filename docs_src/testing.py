import asyncio

from graphwright import build_agent
from graphwright.testing import ScriptedModel, assert_valid_conversation, calls, says


async def test_a_missing_file_is_told_to_the_model() -> None:
    def read(path: str) -> str:
        raise FileNotFoundError(path)

    with ScriptedModel([calls("read", path="notes.md"), says("There is no such file.")]) as model:
        agent = await build_agent(model=model, extra_tools=[read])
        result = await agent.ainvoke("What do my notes say?")

    assert_valid_conversation(result["messages"])
    assert model.inputs[1][-1].content == "FileNotFoundError: notes.md"
    assert model.inputs[1][-1].status == "error"


asyncio.run(test_a_missing_file_is_told_to_the_model())
print("passed")
