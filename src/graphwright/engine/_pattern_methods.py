"""The patterns as static methods of `PromptGraph`; each is a `build_*_graph` of `graphwright.engine.prebuilts`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwright.engine.base import BaseNode
    from graphwright.engine.graph import PromptGraph

__all__ = ["PatternMethods"]

Tools = Iterable[Any] | None
Blocks = list[Any] | None


class PatternMethods:
    """What `PromptGraph` offers to make ready-made graphs."""

    @staticmethod
    def react(
        tools: Tools = None,
        system_prompt: str = "",
        *,
        blocks: Blocks = None,
        max_node_iterations: int = 15,
        output_schema: Any = None,
    ) -> PromptGraph:
        """Return the standard agent: it calls tools until it can answer."""
        from graphwright.engine.prebuilts import build_react_graph

        return build_react_graph(
            tools, system_prompt, blocks=blocks, max_node_iterations=max_node_iterations, output_schema=output_schema
        )

    @staticmethod
    def verify(
        tools: Tools = None,
        system_prompt: str = "",
        *,
        blocks: Blocks = None,
        max_node_iterations: int = 6,
        output_schema: Any = None,
    ) -> PromptGraph:
        """Return an agent that plans, solves and checks within one answer."""
        from graphwright.engine.prebuilts import build_verify_graph

        return build_verify_graph(
            tools, system_prompt, blocks=blocks, max_node_iterations=max_node_iterations, output_schema=output_schema
        )

    @staticmethod
    def managed(
        tools: Tools = None,
        system_prompt: str = "",
        *,
        blocks: Blocks = None,
        max_node_iterations: int = 30,
        output_schema: Any = None,
    ) -> PromptGraph:
        """Return an agent for long chains of tool calls, whose context stays bounded."""
        from graphwright.engine.prebuilts import build_managed_graph

        return build_managed_graph(
            tools, system_prompt, blocks=blocks, max_node_iterations=max_node_iterations, output_schema=output_schema
        )

    @staticmethod
    def code_action(
        tools: Tools = None,
        system_prompt: str = "",
        *,
        blocks: Blocks = None,
        sandbox_factory: Any = None,
        max_repairs: int = 1,
        exec_timeout: int = 120,
        max_tool_calls: int = 50,
    ) -> PromptGraph:
        """Return an agent that writes one program instead of calling tools one by one."""
        from graphwright.engine.prebuilts import build_code_action_graph

        return build_code_action_graph(
            tools,
            system_prompt,
            blocks=blocks,
            sandbox_factory=sandbox_factory,
            max_repairs=max_repairs,
            exec_timeout=exec_timeout,
            max_tool_calls=max_tool_calls,
        )

    @staticmethod
    def peoatr(
        tools: Tools = None,
        system_prompt: str = "",
        *,
        planning_instructions: str = "",
        acting_instructions: str = "",
        thinking_instructions: str = "",
        reflecting_instructions: str = "",
        blocks: Blocks = None,
        max_act_steps: int = 12,
        output_schema: Any = None,
    ) -> PromptGraph:
        """Return the pattern plan, act, think, reflect, answer."""
        from graphwright.engine.prebuilts import build_peoatr_graph

        return build_peoatr_graph(
            tools,
            system_prompt,
            planning_instructions=planning_instructions,
            acting_instructions=acting_instructions,
            thinking_instructions=thinking_instructions,
            reflecting_instructions=reflecting_instructions,
            blocks=blocks,
            max_act_steps=max_act_steps,
            output_schema=output_schema,
        )

    @staticmethod
    def research(
        search_tools: Tools = None,
        synthesis_tools: Tools = None,
        system_prompt: str = "",
        *,
        blocks: Blocks = None,
        verify: bool = True,
        max_search_steps: int = 12,
        max_verify_rounds: int = 2,
        output_schema: Any = None,
    ) -> PromptGraph:
        """Return the pattern search, verify, synthesize."""
        from graphwright.engine.prebuilts import build_research_graph

        return build_research_graph(
            search_tools,
            synthesis_tools,
            system_prompt,
            blocks=blocks,
            verify=verify,
            max_search_steps=max_search_steps,
            max_verify_rounds=max_verify_rounds,
            output_schema=output_schema,
        )

    @staticmethod
    def autonomous(
        node_pool: Iterable[BaseNode] | None = None,
        system_prompt: str = "",
        *,
        tools: Tools = None,
        max_steps: int = 15,
        blocks: Blocks = None,
        max_tool_rounds: int = 10,
        output_schema: Any = None,
    ) -> PromptGraph:
        """Return an agent that chooses its next step itself, from a pool of nodes."""
        from graphwright.engine.prebuilts import build_autonomous_graph

        return build_autonomous_graph(
            node_pool,
            system_prompt,
            tools=tools,
            max_steps=max_steps,
            blocks=blocks,
            max_tool_rounds=max_tool_rounds,
            output_schema=output_schema,
        )

    @staticmethod
    def deliberate(
        tools: Tools = None,
        system_prompt: str = "",
        *,
        blocks: Blocks = None,
        max_act_steps: int = 12,
        output_schema: Any = None,
    ) -> PromptGraph:
        """Return the pattern think, plan, act, observe, reflect, answer."""
        from graphwright.engine.prebuilts import build_deliberate_graph

        return build_deliberate_graph(
            tools, system_prompt, blocks=blocks, max_act_steps=max_act_steps, output_schema=output_schema
        )

    @staticmethod
    def debate(
        system_prompt: str = "",
        *,
        tools: Tools = None,
        blocks: Blocks = None,
        max_rounds: int = 3,
        max_proposer_steps: int = 12,
        output_schema: Any = None,
    ) -> PromptGraph:
        """Return the pattern proposer, critic, judge, answer."""
        from graphwright.engine.prebuilts import build_debate_graph

        return build_debate_graph(
            system_prompt,
            tools=tools,
            blocks=blocks,
            max_rounds=max_rounds,
            max_proposer_steps=max_proposer_steps,
            output_schema=output_schema,
        )

    @staticmethod
    def pipeline(*nodes: Any) -> PromptGraph:
        """Return a graph that runs `nodes` in the order given."""
        from graphwright.engine.prebuilts import build_pipeline_graph

        return build_pipeline_graph(*nodes)
