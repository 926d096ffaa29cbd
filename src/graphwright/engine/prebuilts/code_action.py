"""The pattern whose model writes one program instead of calling tools one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.engine.graph import PromptGraph
from graphwright.exceptions import FeatureOffError

__all__ = ["build_code_action_graph"]


def build_code_action_graph(
    tools: Iterable[Any] | None = None,
    system_prompt: str = "",
    *,
    blocks: list[Any] | None = None,
    sandbox_factory: Any = None,
    max_repairs: int = 1,
    exec_timeout: int = 120,
    max_tool_calls: int = 50,
) -> PromptGraph:
    """Refuse: the pattern runs the model's program in a sandbox, and this release has none.

    Raises:
        FeatureOffError: always.
    """
    raise FeatureOffError(
        "the pattern 'code-action' needs a sandbox, which this release does not have; "
        "use 'managed' for tasks with many tool calls"
    )
