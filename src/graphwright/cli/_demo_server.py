"""The MCP server of the demo: the read-only tools of one folder, over standard input and output.

python -m graphwright.cli._demo_server FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["serve"]


def serve(root: str) -> None:
    """Serve the tools until the input ends."""
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    from graphwright.cli.files import file_tools

    server = MCPServer("files")
    for function in file_tools(root):
        server.add_tool(
            _told(function),
            name=function.__name__,
            description=function.__doc__ or "",
            annotations=ToolAnnotations(read_only_hint=True),
            structured_output=False,
        )
    server.run("stdio")


def _told(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its errors as the SDK wants them."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        from mcp.server.mcpserver.exceptions import ToolError as Refused

        from graphwright._internal.jsonio import dumps
        from graphwright.exceptions import ToolError

        try:
            value = function(*args, **kwargs)
        except ToolError as error:
            raise Refused(str(error)) from error
        return value if isinstance(value, str) else dumps(value)

    call.__annotations__ = {**function.__annotations__, "return": str}
    return call


if __name__ == "__main__":
    serve(sys.argv[1])
