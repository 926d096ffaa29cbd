"""The names of the orchestrator door, and the modules that they are in: one table for this package and the root."""

from __future__ import annotations

__all__ = ["HOMES", "MODULE_OF"]

_HERE = "graphwright.orchestrator"

HOMES: dict[str, tuple[str, ...]] = {
    f"{_HERE}.bot": ("OrchestratorBot",),
    f"{_HERE}.run": ("BotRun",),
    f"{_HERE}.interfaces": ("BaseInterface", "IBot", "IConversationBot", "ILanguageModel", "IOrchestratorBot"),
    f"{_HERE}.response": ("BotResponse",),
    f"{_HERE}.stream_events": (
        "AbortedEvent",
        "AgentUpdate",
        "GraphEdgeSpec",
        "GraphTopologyEvent",
        "GuardRejectedEvent",
        "NodeDetail",
        "NodeInvokedEvent",
        "NodeTraceEntry",
        "PartialResponseEvent",
        "PlanStep",
        "QuestionEvent",
        "QuestionItem",
        "QuestionOptionEvent",
        "StatusEvent",
        "StepEvent",
        "TokenUsage",
        "ToolRecord",
        "ToolsUpdate",
    ),
    f"{_HERE}.questions": (
        "ASK_USER_TOOL_NAME",
        "AskUserQuestionTool",
        "AskUserSchema",
        "Question",
        "QuestionOption",
    ),
    f"{_HERE}.guards": (
        "ArgPatternGuard",
        "BudgetGuard",
        "GuardContext",
        "GuardDecision",
        "GuardEvent",
        "ProhibitedActionsGuard",
        "RiskThresholdGuard",
        "SafetyInputGuard",
        "SafetyOutputGuard",
        "ToolAllowlistGuard",
        "ToolDenylistGuard",
        "ToolGuard",
    ),
    f"{_HERE}.skills": ("Skill", "load_skills"),
    f"{_HERE}.language_models": (
        "AnthropicLanguageModel",
        "BedrockLanguageModel",
        "DeepSeekLanguageModel",
        "GeminiLanguageModel",
        "OpenAILanguageModel",
    ),
}

MODULE_OF = {name: module for module, names in HOMES.items() for name in names}
