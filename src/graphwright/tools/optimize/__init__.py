"""Tell a model less of its tools: shorter definitions, and only those tools that a request is about."""

from graphwright.tools.optimize.config import OptimizationLevel, ToolOptimizationConfig
from graphwright.tools.optimize.selection import ToolSelector
from graphwright.tools.optimize.trimming import trimmed, trimmed_schema

__all__ = ["OptimizationLevel", "ToolOptimizationConfig", "ToolSelector", "trimmed", "trimmed_schema"]
