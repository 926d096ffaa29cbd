"""The autonomous agent: it pursues a goal with tools, plans, asks, verifies, pauses and goes on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphwright.orchestrator.names import MODULE_OF

if TYPE_CHECKING:
    from graphwright.orchestrator.bot import OrchestratorBot
    from graphwright.orchestrator.guards import (
        ArgPatternGuard,
        BudgetGuard,
        GuardContext,
        GuardDecision,
        GuardEvent,
        ProhibitedActionsGuard,
        RiskThresholdGuard,
        SafetyInputGuard,
        SafetyOutputGuard,
        ToolAllowlistGuard,
        ToolDenylistGuard,
        ToolGuard,
    )
    from graphwright.orchestrator.interfaces import (
        BaseInterface,
        IBot,
        IConversationBot,
        ILanguageModel,
        IOrchestratorBot,
    )
    from graphwright.orchestrator.language_models import (
        AnthropicLanguageModel,
        BedrockLanguageModel,
        DeepSeekLanguageModel,
        GeminiLanguageModel,
        OpenAILanguageModel,
    )
    from graphwright.orchestrator.questions import (
        ASK_USER_TOOL_NAME,
        AskUserQuestionTool,
        AskUserSchema,
        Question,
        QuestionOption,
    )
    from graphwright.orchestrator.response import BotResponse
    from graphwright.orchestrator.run import BotRun
    from graphwright.orchestrator.skills import Skill, load_skills
    from graphwright.orchestrator.stream_events import (
        AbortedEvent,
        AgentUpdate,
        GraphEdgeSpec,
        GraphTopologyEvent,
        GuardRejectedEvent,
        NodeDetail,
        NodeInvokedEvent,
        NodeTraceEntry,
        PartialResponseEvent,
        PlanStep,
        QuestionEvent,
        QuestionItem,
        QuestionOptionEvent,
        StatusEvent,
        StepEvent,
        TokenUsage,
        ToolRecord,
        ToolsUpdate,
    )

__all__ = [
    "ASK_USER_TOOL_NAME",
    "AbortedEvent",
    "AgentUpdate",
    "AnthropicLanguageModel",
    "ArgPatternGuard",
    "AskUserQuestionTool",
    "AskUserSchema",
    "BaseInterface",
    "BedrockLanguageModel",
    "BotResponse",
    "BotRun",
    "BudgetGuard",
    "DeepSeekLanguageModel",
    "GeminiLanguageModel",
    "GraphEdgeSpec",
    "GraphTopologyEvent",
    "GuardContext",
    "GuardDecision",
    "GuardEvent",
    "GuardRejectedEvent",
    "IBot",
    "IConversationBot",
    "ILanguageModel",
    "IOrchestratorBot",
    "NodeDetail",
    "NodeInvokedEvent",
    "NodeTraceEntry",
    "OpenAILanguageModel",
    "OrchestratorBot",
    "PartialResponseEvent",
    "PlanStep",
    "ProhibitedActionsGuard",
    "Question",
    "QuestionEvent",
    "QuestionItem",
    "QuestionOption",
    "QuestionOptionEvent",
    "RiskThresholdGuard",
    "SafetyInputGuard",
    "SafetyOutputGuard",
    "Skill",
    "StatusEvent",
    "StepEvent",
    "TokenUsage",
    "ToolAllowlistGuard",
    "ToolDenylistGuard",
    "ToolGuard",
    "ToolRecord",
    "ToolsUpdate",
    "load_skills",
]


def __getattr__(name: str) -> Any:
    module = MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
