import asyncio

from graphwright import build_agent
from graphwright.runlog import MemoryRunLog
from graphwright.testing import ScriptedModel, calls, says


def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


async def main() -> None:
    agent = await build_agent(
        model=ScriptedModel([calls("delete_file", path="/data/x"), says("Done.")]),
        extra_tools=[delete_file],
        approval=["delete_*"],
        runlog=MemoryRunLog(),
    )

    paused = await agent.ainvoke("Clean up.")
    print(paused.status, paused.pending[0].value["tool"], paused.pending[0].value["params"])

    # Maybe days later, in another process.
    result = await agent.resume(paused.run_id, {"approved": True, "args": {"path": "/scratch/x"}}, by="ann")
    print(result.messages[-2].content)
    print(result.text)


asyncio.run(main())
