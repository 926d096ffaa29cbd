"""The Model Context Protocol: `graphwright.mcp.client` uses the tools, resources and prompts of MCP servers."""
