"""Graphs that are ready to use."""

from graphwright.engine.prebuilts.react import build_react_graph

__all__ = ["build_react_graph"]
