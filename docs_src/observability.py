import asyncio
import tempfile
from pathlib import Path

from graphwright import CallerContext, build_agent
from graphwright.testing import ScriptedModel, calls, says


def look_up(city: str, api_key: str) -> str:
    """Look up the weather."""
    return f"sunny in {city}"


async def main() -> None:
    folder = Path(tempfile.mkdtemp())
    model = ScriptedModel([calls("look_up", city="Oslo", api_key="k-123"), says("It is sunny.")])
    agent = await build_agent(
        model=model,
        extra_tools=[look_up],
        observe={"transporters": ["json"], "output_dir": folder},
        observer_agent_id="weather",
    )
    await agent.ainvoke("How is Oslo?", caller=CallerContext(user_id="ann"))

    for entry in agent.collector.for_user("ann"):
        print(entry.event_type, entry.agent_id, entry.data.get("arguments", ""))
    stats = agent.get_stats()
    print(stats["runs"], stats["model_calls"], stats["tools"]["look_up"]["calls"], stats["errors"])

    await agent.shutdown()
    print((folder / f"graphwright-{agent.collector.record_id}.json").exists())


asyncio.run(main())
