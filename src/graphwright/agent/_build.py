"""Build an agent from the keywords of its reference signature."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphwright.agent._agent import Agent
from graphwright.agent._approval import approvals_of, gate_of, server_approver, warn_of_idle_patterns
from graphwright.agent._caching import cache_use
from graphwright.agent._options import (
    DEFAULT_MAX_DELEGATION_DEPTH,
    LEFT_OUT,
    GraphOptions,
    PromptOptions,
    RunOptions,
    ToolOptions,
    agent_id_of,
    conversations_of,
    durability_of,
    guards_of,
    instructions_text,
    memory_of,
    refuse_missing_features,
)
from graphwright.agent._patterns import graph_of, node_limit, run_limit
from graphwright.agent._sandboxing import sandbox_of
from graphwright.agent._servers import ServerOptions, ServerTools
from graphwright.agent._trace import print_tool_result
from graphwright.cross_agent import owned_by, peer_tools
from graphwright.engine.answer_schema import AnswerSchema
from graphwright.engine.execution import PromptGraphEngine
from graphwright.engine.graph import PromptGraph
from graphwright.exceptions import ConfigurationError
from graphwright.runtime import watch_options

if TYPE_CHECKING:
    from graphwright.approval import Approvals

__all__ = ["build_agent"]


async def build_agent(
    *,
    servers: Mapping[str, Any] | str | Path | None = None,
    model: Any = None,
    instructions: Any = None,
    identity: Any = None,
    trace_tools: bool = False,
    cross_agents: Mapping[str, Any] | None = None,
    include_broadcast: bool = False,
    max_delegation_depth: int = DEFAULT_MAX_DELEGATION_DEPTH,
    delegation_timeout: float | None = None,
    sandbox: Any = None,
    observer: Any = None,
    observer_agent_id: str | None = None,
    observe: Any = None,
    memory: Any = None,
    memory_auto_store: bool = False,
    memory_max_results: int = 5,
    memory_min_score: float = 0.0,
    memory_timeout: float = 5.0,
    extra_tools: Iterable[Any] | None = None,
    flow: Any = None,
    conversation_store: Any = None,
    conversation_max_messages: int = 0,
    optimize_tools: Any = None,
    guardrails: Any = None,
    cache: Any = None,
    approval: Any = None,
    events: Any = None,
    on_tool_progress: Callable[..., Any] | None = None,
    max_invocation_time: float = 0,
    adaptive: Any = None,
    context_engine: Any = None,
    context_compaction: Any = None,
    agent_pattern: str | PromptGraph | None = None,
    pattern: str | PromptGraph | None = None,
    graph_blocks: list[Any] | None = None,
    node_pool: list[Any] | None = None,
    max_agent_iterations: int = LEFT_OUT,
    tool_summary: str = "off",
    code_action: Any = None,
    expose_resources: bool = False,
    expose_prompts: bool = False,
    hooks: Iterable[Any] | None = None,
    output_schema: Any = None,
    max_parallel_tools: int = 32,
    tool_timeout: float | None = None,
    allow_self_modification: bool = True,
    max_mutations_per_run: int = 10,
    human_handler: Callable[..., Any] | None = None,
    lightweight_model: Any = None,
    runlog: Any = None,
    on_busy: str = "refuse",
    on_paused: str = "refuse",
    mcp_sampling: Any = None,
) -> Agent:
    """Build an agent. Only `model` is required.

    `model` is a LangChain chat model, a `Runnable`, a model of your own, or a string such as `"openai:gpt-5-mini"`.
    `extra_tools` are plain typed functions or LangChain tools; `instructions` is the system prompt;
    `output_schema` is a pydantic model that the final answer fits (`RunResult.output`). `agent_pattern` is a name of
    `AGENT_PATTERNS` or a graph; `node_pool` are nodes from which it chooses its next step. `max_agent_iterations`
    is the most node executions of a run: when left out, 15 for the default pattern, 25 for a graph of your own, and
    for other patterns what the budgets of their stages add up to. `max_invocation_time` and `tool_timeout` are
    seconds; `tool_timeout=None` leaves a call only the limit of its run.

    `approval` is an `ApprovalPolicy`, a list of patterns such as `["delete_*"]` or a dict of a policy's fields: calls
    of tools that match wait for the policy's handler, without one for the answer to the paused run, and without a run
    log they are refused. A handler or a function alone only answers servers that ask for a yes or a no.

    `runlog` is a run log, the path of one, or True for the default file: runs are written down then, can pause, and go
    on after a crash (`agent.resume`). `on_busy` says what a run does when another is at work on its session
    (`"refuse"` or `"wait"`), `on_paused` what it does when one is paused there (`"refuse"` or `"abandon"`).

    `flow` is a `ConversationFlow`, a subclass or a function that makes one: its prompt comes before `instructions`.
    `adaptive` is True, an `AdaptiveStrategyConfig` or a dict of its fields: failed tool calls become lessons.
    `context_engine` is a `ContextEngine`, whose layers come after `instructions`.

    `memory` is a `MemoryProvider`, yours to close: what it finds for the question comes after `instructions`
    as data, and `memory_auto_store=True` adds each exchange. `memory_timeout` is seconds, for a search and for a write.

    `guardrails` is True for a `SecurityScanner` with its defaults, a scanner, an object with `check_input` or
    `check_output`, or a list of guards. What the user sends is judged before the run begins, and a reply before anybody
    sees it.

    `cache` is a `SemanticCache`, or True for one that finds the very same question of the same user again.

    `sandbox` is True, a dict of `SandboxConfig` fields, a `SandboxConfig`, or a `SandboxManager` of your own: the agent
    gets tools that run commands and programs there, each conversation in a sandbox of its own without a network.

    `observe` is True, an `ObservabilityConfig` or a dict of its fields: runs are recorded in `agent.collector`, or in
    the `observer` given, under the name `observer_agent_id`. `events` is an `EventNotifier`; `agent.shutdown()`
    delivers what it holds.

    `servers` are MCP servers: a mapping of name to spec, or an `mcp.json`. They are connected to here, and their tools
    are the agent's; `agent.shutdown()` ends the sessions. `identity` is an `AgentIdentity`. `mcp_sampling=True` lets
    servers ask the agent's model.

    Raises:
        ConfigurationError: a keyword does not fit; the message names it and the remedy.
        MCPError: a server cannot be used.
        IdentityError: nobody says who the agent is.
        SandboxUnavailableError: a sandbox is asked for, and none can be started or hold to what is asked.
        FeatureOffError: a keyword asks for a feature that this release does not have.
    """
    refuse_missing_features(
        {
            "code_action": code_action,
        }
    )
    if model is None:
        raise ConfigurationError(
            'model is missing; give a LangChain chat model or a string such as model="openai:gpt-5-mini", '
            'or model="local" for a small model that needs no key'
        )
    peers = peer_tools(
        cross_agents or {},
        include_broadcast=bool(include_broadcast),
        max_depth=max_delegation_depth,
        timeout=delegation_timeout,
    )
    sandboxes = await sandbox_of(sandbox)
    added = [*peers, *(sandboxes.tools if sandboxes is not None else ())]
    tools = ToolOptions(
        extra_tools=[*(extra_tools or ()), *added] if added else extra_tools,
        trace_tools=trace_tools,
        tool_summary=tool_summary,
        max_parallel_tools=max_parallel_tools,
        tool_timeout=tool_timeout,
        optimize_tools=optimize_tools,
    )
    mcp = ServerOptions(
        servers=servers,
        expose_resources=expose_resources,
        expose_prompts=expose_prompts,
        on_tool_progress=on_tool_progress,
        mcp_sampling=mcp_sampling,
        trace_tools=trace_tools,
    )
    graph = GraphOptions(
        agent_pattern=_one_pattern(agent_pattern, pattern),
        graph_blocks=graph_blocks,
        node_pool=node_pool,
        output_schema=output_schema,
        max_agent_iterations=max_agent_iterations,
        allow_self_modification=allow_self_modification,
        max_mutations_per_run=max_mutations_per_run,
        context_compaction=context_compaction,
    )
    agent_id = await agent_id_of(identity)
    approvals = approvals_of(approval, has_servers=bool(servers))
    run = RunOptions(
        max_invocation_time=max_invocation_time,
        hooks=hooks,
        human_handler=human_handler,
        lightweight_model=lightweight_model,
        conversations=conversations_of(conversation_store, conversation_max_messages),
        max_messages=conversation_max_messages,
        durability=durability_of(runlog, on_busy=on_busy, on_paused=on_paused, agent_id=agent_id),
        identity=identity,
        agent_id=agent_id,
        guards=guards_of(guardrails),
        watch=watch_options(observe=observe, observer=observer, observer_agent_id=observer_agent_id, events=events),
        sandbox=sandboxes,
    )
    remembers = memory_of(memory, memory_auto_store, memory_max_results, memory_min_score, memory_timeout)
    prompts = PromptOptions(flow=flow, adaptive=adaptive, context_engine=context_engine, memory=remembers)
    agent = _assemble(model, instructions, tools, graph, run, mcp, approvals, cache, prompts)
    owned_by(peers, agent)
    await agent.open()
    return agent


def _one_pattern(agent_pattern: Any, pattern: Any) -> Any:
    if pattern is None:
        return agent_pattern
    warnings.warn("pattern= is deprecated; use agent_pattern=", DeprecationWarning, stacklevel=3)
    if agent_pattern is not None:
        raise ConfigurationError("agent_pattern= and its old name pattern= are both given; give agent_pattern= alone")
    return pattern


def _assemble(
    model: Any,
    instructions: Any,
    tools: ToolOptions,
    graph: GraphOptions,
    run: RunOptions,
    mcp: ServerOptions,
    approvals: Approvals | None,
    cache: Any,
    prompts: PromptOptions,
) -> Agent:
    built = graph_of(graph)
    own = built is graph.agent_pattern or graph.node_pool is not None
    # Nodes of the user's own get no instructions that the user did not give.
    text = "" if own and instructions is None else instructions_text(instructions)
    engine = PromptGraphEngine(
        built,
        model,
        max_iterations=run_limit(graph, built),
        max_node_iterations=node_limit(graph, built),
        hooks=run.hooks,
        allow_self_modification=graph.allow_self_modification,
        max_mutations_per_run=graph.max_mutations_per_run,
        tools=tools.extra_tools,
        tool_summary=tools.tool_summary,
        max_parallel_tools=tools.max_parallel_tools,
        tool_timeout=tools.tool_timeout,
        trace=print_tool_result if tools.trace_tools else None,
        instructions=text,
        human_handler=run.human_handler,
        lightweight_model=run.lightweight_model,
        compaction=graph.context_compaction,
        tool_selector=tools.selector(),
        gate=gate_of(approvals, agent_id=run.agent_id or built.name),
    )
    if not mcp.servers:
        warn_of_idle_patterns(approvals, engine)
    engine.agent_id = run.agent_id
    schema = AnswerSchema(graph.output_schema) if graph.output_schema is not None else None
    return Agent(
        engine,
        servers=_servers(engine, mcp, run, approvals) if mcp.servers else None,
        identity=run.identity,
        max_seconds=run.max_invocation_time,
        output_schema=schema,
        shaping=prompts.shaping(engine, graph, instructions, text),
        watch=run.watch,
        cache=cache_use(cache, engine, instructions=text, output_schema=schema),
        durability=run.durability,
        conversations=run.conversations,
        max_messages=run.max_messages,
        guards=run.guards,
        sandbox=run.sandbox,
    )


def _servers(
    engine: PromptGraphEngine, mcp: ServerOptions, run: RunOptions, approvals: Approvals | None
) -> ServerTools:
    return ServerTools(
        engine,
        mcp,
        identity=run.identity,
        can_pause=run.durability is not None,
        approver=server_approver(approvals),
    )
