"""Doors through which programs of others reach an agent."""

from graphwright.serve.mcp import mcp_server

__all__ = ["mcp_server"]
