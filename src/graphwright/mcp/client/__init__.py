"""Use MCP servers: say which there are, connect to them, and offer what they have to a model.

It needs the extra `mcp`, whose packages are loaded when the first server is connected to.
"""

from graphwright.exceptions import MCPConnectionRejectedError, MCPCredentialError, MCPError
from graphwright.mcp.client.adapter import MCPTool
from graphwright.mcp.client.catalogue import Catalogue
from graphwright.mcp.client.credentials import TokenSource
from graphwright.mcp.client.elicitation import OnElicit, Sampling
from graphwright.mcp.client.pool import MCPPool
from graphwright.mcp.client.progress import OnProgress
from graphwright.mcp.client.servers import HTTPServerSpec, ServerSpec, StdioServerSpec, as_servers, as_spec

__all__ = [
    "Catalogue",
    "HTTPServerSpec",
    "MCPConnectionRejectedError",
    "MCPCredentialError",
    "MCPError",
    "MCPPool",
    "MCPTool",
    "OnElicit",
    "OnProgress",
    "Sampling",
    "ServerSpec",
    "StdioServerSpec",
    "TokenSource",
    "as_servers",
    "as_spec",
]
