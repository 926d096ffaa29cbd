import asyncio

from graphwright import build_agent, text_of
from graphwright.testing import ScriptedModel, calls, says

PROGRAM = """
numbers = [int(line) for line in open('numbers.txt').read().split()]
print(sum(numbers), max(numbers))
"""


async def main() -> None:
    model = ScriptedModel(
        [
            calls("sandbox_write_file", path="numbers.txt", content="17\n4\n21\n"),
            calls("sandbox_python", code=PROGRAM),
            calls("sandbox_read_file", path="/etc/shadow"),
            says("Together 42, and the largest is 21."),
        ]
    )
    async with await build_agent(model=model, sandbox={"memory": "256M", "timeout": 10}) as agent:
        result = await agent.ainvoke("Add up 17, 4 and 21.")

    for message in result["messages"][1:]:
        if text_of(message):
            print(f"{message.type}: {text_of(message).split(':')[0]}")


asyncio.run(main())
