"""Doors through which programs of others reach an agent."""

from graphwright.serve.a2a import A2APeer, a2a_app
from graphwright.serve.mcp import mcp_server

__all__ = ["A2APeer", "a2a_app", "mcp_server"]
