import asyncio
import sys

from graphwright import build_agent, text_of
from graphwright.mcp.client import StdioServerSpec

# Or command="uvx", args=["mcp-server-git", ...], which installs it by the way.
SERVERS = {"git": StdioServerSpec(command=sys.executable, args=["-m", "mcp_server_git", "--repository", "."])}


async def main() -> None:
    async with await build_agent(
        model="openai:gpt-5-mini",
        servers=SERVERS,
        instructions="You know the git repository in the folder '.'. Look before you answer.",
    ) as agent:
        print(text_of(await agent.ainvoke("What were the last three commits about?")))


asyncio.run(main())
