"""Graphwright: AI agents on an explicit, inspectable reasoning graph.

The names people type every day are here; each is imported from its own module when it is first used, so
`import graphwright` loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwright.agent import AGENT_PATTERNS, Agent, PromptiseAgent, Run, build_agent
    from graphwright.caller import CallerContext, get_current_caller
    from graphwright.context import ContextEngine
    from graphwright.engine import (
        BaseNode,
        Edge,
        ExecutionReport,
        GraphMutation,
        GraphState,
        Hook,
        NodeEvent,
        NodeFlag,
        NodeResult,
        PromptGraph,
        PromptGraphEngine,
        PromptNode,
        ToolNode,
        node,
    )
    from graphwright.exceptions import (
        ConfigurationError,
        EmptyReplyError,
        FeatureOffError,
        GraphBudgetExceededError,
        GraphExecutionError,
        GraphInvalidError,
        GraphIterationLimitError,
        GraphStoppedError,
        GraphwrightError,
        MissingExtraError,
        ModelError,
        RunAbortedError,
        RunTimeoutError,
        ToolArgumentError,
        ToolError,
        UnknownModelError,
        UnknownPatternError,
    )
    from graphwright.messages import text_of
    from graphwright.models import as_model
    from graphwright.orchestrator import (
        ASK_USER_TOOL_NAME as ASK_USER_TOOL_NAME,
    )
    from graphwright.orchestrator import (
        AbortedEvent as AbortedEvent,
    )
    from graphwright.orchestrator import (
        AgentUpdate as AgentUpdate,
    )
    from graphwright.orchestrator import (
        AnthropicLanguageModel as AnthropicLanguageModel,
    )
    from graphwright.orchestrator import (
        ArgPatternGuard as ArgPatternGuard,
    )
    from graphwright.orchestrator import (
        AskUserQuestionTool as AskUserQuestionTool,
    )
    from graphwright.orchestrator import (
        AskUserSchema as AskUserSchema,
    )
    from graphwright.orchestrator import (
        BaseInterface as BaseInterface,
    )
    from graphwright.orchestrator import (
        BedrockLanguageModel as BedrockLanguageModel,
    )
    from graphwright.orchestrator import (
        BotResponse as BotResponse,
    )
    from graphwright.orchestrator import (
        BotRun as BotRun,
    )
    from graphwright.orchestrator import (
        BudgetGuard as BudgetGuard,
    )
    from graphwright.orchestrator import (
        DeepSeekLanguageModel as DeepSeekLanguageModel,
    )
    from graphwright.orchestrator import (
        GeminiLanguageModel as GeminiLanguageModel,
    )
    from graphwright.orchestrator import (
        GraphEdgeSpec as GraphEdgeSpec,
    )
    from graphwright.orchestrator import (
        GraphTopologyEvent as GraphTopologyEvent,
    )
    from graphwright.orchestrator import (
        GuardContext as GuardContext,
    )
    from graphwright.orchestrator import (
        GuardDecision as GuardDecision,
    )
    from graphwright.orchestrator import (
        GuardEvent as GuardEvent,
    )
    from graphwright.orchestrator import (
        GuardRejectedEvent as GuardRejectedEvent,
    )
    from graphwright.orchestrator import (
        IBot as IBot,
    )
    from graphwright.orchestrator import (
        IConversationBot as IConversationBot,
    )
    from graphwright.orchestrator import (
        ILanguageModel as ILanguageModel,
    )
    from graphwright.orchestrator import (
        IOrchestratorBot as IOrchestratorBot,
    )
    from graphwright.orchestrator import (
        NodeDetail as NodeDetail,
    )
    from graphwright.orchestrator import (
        NodeInvokedEvent as NodeInvokedEvent,
    )
    from graphwright.orchestrator import (
        NodeTraceEntry as NodeTraceEntry,
    )
    from graphwright.orchestrator import (
        OpenAILanguageModel as OpenAILanguageModel,
    )
    from graphwright.orchestrator import (
        OrchestratorBot as OrchestratorBot,
    )
    from graphwright.orchestrator import (
        PartialResponseEvent as PartialResponseEvent,
    )
    from graphwright.orchestrator import (
        PlanStep as PlanStep,
    )
    from graphwright.orchestrator import (
        ProhibitedActionsGuard as ProhibitedActionsGuard,
    )
    from graphwright.orchestrator import (
        Question as Question,
    )
    from graphwright.orchestrator import (
        QuestionEvent as QuestionEvent,
    )
    from graphwright.orchestrator import (
        QuestionItem as QuestionItem,
    )
    from graphwright.orchestrator import (
        QuestionOption as QuestionOption,
    )
    from graphwright.orchestrator import (
        QuestionOptionEvent as QuestionOptionEvent,
    )
    from graphwright.orchestrator import (
        RiskThresholdGuard as RiskThresholdGuard,
    )
    from graphwright.orchestrator import (
        SafetyInputGuard as SafetyInputGuard,
    )
    from graphwright.orchestrator import (
        SafetyOutputGuard as SafetyOutputGuard,
    )
    from graphwright.orchestrator import (
        Skill as Skill,
    )
    from graphwright.orchestrator import (
        StatusEvent as StatusEvent,
    )
    from graphwright.orchestrator import (
        StepEvent as StepEvent,
    )
    from graphwright.orchestrator import (
        TokenUsage as TokenUsage,
    )
    from graphwright.orchestrator import (
        ToolAllowlistGuard as ToolAllowlistGuard,
    )
    from graphwright.orchestrator import (
        ToolDenylistGuard as ToolDenylistGuard,
    )
    from graphwright.orchestrator import (
        ToolGuard as ToolGuard,
    )
    from graphwright.orchestrator import (
        ToolRecord as ToolRecord,
    )
    from graphwright.orchestrator import (
        ToolsUpdate as ToolsUpdate,
    )
    from graphwright.orchestrator import (
        load_skills as load_skills,
    )
    from graphwright.tools import as_tool, tool
    from graphwright.usage import Usage

__version__ = "0.1.0"

_HOMES = {
    "graphwright.agent": ("AGENT_PATTERNS", "Agent", "PromptiseAgent", "Run", "build_agent"),
    "graphwright.caller": ("CallerContext", "get_current_caller"),
    "graphwright.context": ("ContextEngine",),
    "graphwright.engine": (
        "BaseNode",
        "Edge",
        "ExecutionReport",
        "GraphMutation",
        "GraphState",
        "Hook",
        "NodeEvent",
        "NodeFlag",
        "NodeResult",
        "PromptGraph",
        "PromptGraphEngine",
        "PromptNode",
        "ToolNode",
        "node",
    ),
    "graphwright.exceptions": (
        "ConfigurationError",
        "EmptyReplyError",
        "FeatureOffError",
        "GraphBudgetExceededError",
        "GraphExecutionError",
        "GraphInvalidError",
        "GraphIterationLimitError",
        "GraphStoppedError",
        "GraphwrightError",
        "MissingExtraError",
        "ModelError",
        "RunAbortedError",
        "RunTimeoutError",
        "ToolArgumentError",
        "ToolError",
        "UnknownModelError",
        "UnknownPatternError",
    ),
    "graphwright.messages": ("text_of",),
    "graphwright.models": ("as_model",),
    "graphwright.tools": ("as_tool", "tool"),
    "graphwright.usage": ("Usage",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AGENT_PATTERNS",
    "Agent",
    "BaseNode",
    "CallerContext",
    "ConfigurationError",
    "ContextEngine",
    "Edge",
    "EmptyReplyError",
    "ExecutionReport",
    "FeatureOffError",
    "GraphBudgetExceededError",
    "GraphExecutionError",
    "GraphInvalidError",
    "GraphIterationLimitError",
    "GraphMutation",
    "GraphState",
    "GraphStoppedError",
    "GraphwrightError",
    "Hook",
    "MissingExtraError",
    "ModelError",
    "NodeEvent",
    "NodeFlag",
    "NodeResult",
    "PromptGraph",
    "PromptGraphEngine",
    "PromptNode",
    "PromptiseAgent",
    "Run",
    "RunAbortedError",
    "RunTimeoutError",
    "ToolArgumentError",
    "ToolError",
    "ToolNode",
    "UnknownModelError",
    "UnknownPatternError",
    "Usage",
    "__version__",
    "as_model",
    "as_tool",
    "build_agent",
    "get_current_caller",
    "node",
    "text_of",
    "tool",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is not None:
        value = globals()[name] = getattr(import_module(module), name)
        return value
    if not name.startswith("_"):
        # The names of the orchestrator page are in a table beside the bot, which is read when one is asked for.
        bots = import_module(f"{__name__}.orchestrator.names").MODULE_OF
        if name in bots:
            value = globals()[name] = getattr(import_module(bots[name]), name)
            return value
    # `graphwright.engine.PromptGraph` works without an import of `graphwright.engine`.
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
