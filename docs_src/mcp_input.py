import asyncio
import sys

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("workshop")


class Size(BaseModel):
    size: int


@server.tool()
async def cut(ctx: Context, what: str) -> str:
    """Cut something; the size is asked for."""
    answer = await ctx.elicit("Which size?", Size)
    return f"cut {what} to {answer.data.size}" if answer.action == "accept" else "nothing was cut"


async def main() -> None:
    from graphwright import build_agent
    from graphwright.runlog import MemoryRunLog
    from graphwright.testing import ScriptedModel, calls, says

    servers = {"workshop": {"command": sys.executable, "args": [__file__, "serve"], "protocol": "legacy"}}
    model = ScriptedModel([calls("cut", what="oak"), says("It is cut.")])
    async with await build_agent(model=model, servers=servers, runlog=MemoryRunLog()) as agent:
        paused = await agent.ainvoke("Cut the oak.")
        for item in paused.pending:
            print(item.kind, item.value["message"], list(item.value["schema"]["properties"]))
        result = await agent.resume(paused.run_id, {"size": 3})
    print(result["messages"][-2].content)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run("stdio")
    else:
        asyncio.run(main())
