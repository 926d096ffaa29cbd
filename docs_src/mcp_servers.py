import asyncio
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("workshop")


@server.tool()
def price_of(item: str) -> float:
    """Return the price of an item in euros."""
    return {"saw": 12.5, "nail": 0.05}[item]


@server.resource("shelf://plan", description="What is to be built")
def plan() -> str:
    return "a shed"


async def main() -> None:
    # Here, because the server needs none of it.
    from graphwright import build_agent, text_of
    from graphwright.mcp.client import StdioServerSpec
    from graphwright.testing import ScriptedModel, calls, says

    # This file is the server, too. Any other command will do, and HTTPServerSpec(url=...) for one over HTTP.
    servers = {"workshop": StdioServerSpec(command=sys.executable, args=[__file__, "serve"])}
    script = [calls("read_resource", uri="shelf://plan"), calls("price_of", item="saw"), says("A saw, for 12.50.")]
    async with await build_agent(model=ScriptedModel(script), servers=servers, expose_resources=True) as agent:
        print(*agent.tool_names)
        result = await agent.ainvoke({"messages": [{"role": "user", "content": "What do I need?"}]})

    for message in result["messages"]:
        if message.type == "tool":
            print(message.name, "->", message.content)
    print(text_of(result))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run("stdio")
    else:
        asyncio.run(main())
