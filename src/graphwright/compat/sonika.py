"""Make the import paths of the orchestrator page, `sonika_ai_toolkit`, lead to the names of this package.

Importing this module is the request; after it `from sonika_ai_toolkit import OrchestratorBot` gives
`graphwright.OrchestratorBot`, the very same class. A name is looked up in our modules when it is first asked for, and
one that this release does not have says so.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from graphwright.compat._aliases import ModuleOffError, check_free, forget
from graphwright.exceptions import FeatureOffError

__all__ = ["MODULES", "ModuleOffError", "NameOffError", "install", "uninstall"]

_THEIRS = "sonika_ai_toolkit"
_GUARDS = "graphwright.orchestrator.guards"
_TOOLS = "graphwright.tools.builtin"
_BOT = "graphwright.orchestrator"

_ROOT = {
    _BOT: (
        "ASK_USER_TOOL_NAME AbortedEvent AgentUpdate AnthropicLanguageModel AskUserQuestionTool AskUserSchema "
        "BaseInterface BedrockLanguageModel BotResponse DeepSeekLanguageModel GeminiLanguageModel GraphEdgeSpec "
        "GraphTopologyEvent GuardRejectedEvent IBot IConversationBot ILanguageModel IOrchestratorBot NodeDetail "
        "NodeInvokedEvent NodeTraceEntry OpenAILanguageModel OrchestratorBot PartialResponseEvent PlanStep Question "
        "QuestionEvent QuestionItem QuestionOption QuestionOptionEvent Skill StatusEvent StepEvent TokenUsage "
        "ToolRecord ToolsUpdate load_skills"
    ),
    _GUARDS: (
        "ArgPatternGuard BudgetGuard GuardContext GuardDecision GuardEvent ProhibitedActionsGuard RiskThresholdGuard "
        "SafetyInputGuard SafetyOutputGuard ToolAllowlistGuard ToolDenylistGuard ToolGuard"
    ),
    _TOOLS: (
        "BashSafeTool CallApiTool DeleteFileTool EmailSMTPTool FetchWebPageTool FindFileTool GetDateTimeTool "
        "ListDirTool MySQLTool PostgreSQLTool ReadFileTool RedisTool RunBashTool RunPythonTool SQLiteTool "
        "SearchWebTool WriteFileTool"
    ),
}
_MORE_GUARDS = (
    " evaluate_guard_chain evaluate_io_guards render_prohibited_section ProhibitedVerdict INJECTION_HARDENING_PROMPT"
)
_AGENTS = {_BOT: "OrchestratorBot IOrchestratorBot"}
_CLASSIFIERS = (
    "TextClassifier ClassificationResponse IntentClassifier SentimentClassifier SafetyClassifier ImageClassifier"
)

MODULES: Mapping[str, Mapping[str, str]] = {
    "": {**_ROOT, "": _CLASSIFIERS},
    "agents": _AGENTS,
    "agents.orchestrator": _AGENTS,
    "agents.orchestrator.memory": {"": "MemoryManager"},
    "guards": {_GUARDS: _ROOT[_GUARDS] + _MORE_GUARDS},
    "tools": {
        _TOOLS: _ROOT[_TOOLS],
        _BOT: "ASK_USER_TOOL_NAME AskUserQuestionTool",
        "": "ToolRegistry DynamicToolSynthesizer",
    },
    "utilities": {},
    "utilities.types": {
        _BOT: "BotResponse ILanguageModel",
        "": "Message ResponseModel IEmbeddings FileProcessorInterface",
    },
}
"""Their module -> our module -> its names there; what is under an empty name is not here yet."""


class NameOffError(FeatureOffError, ImportError):
    """A name of the reference API was imported that this release does not have."""


class _AliasFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _THEIRS and not fullname.startswith(_THEIRS + "."):
            return None
        below = fullname.removeprefix(_THEIRS).removeprefix(".")
        if below not in MODULES:
            raise ModuleOffError(
                f"{fullname!r} leads to nothing in this release of Graphwright; leave it out, or update Graphwright"
            )
        is_package = not below or any(name.startswith(f"{below}.") for name in MODULES)
        return ModuleSpec(fullname, _AliasLoader(below), is_package=is_package)


class _AliasLoader(Loader):
    """Fills a module whose names are looked up in ours when they are asked for."""

    def __init__(self, below: str) -> None:
        self._homes = {name: home for home, names in MODULES[below].items() for name in names.split()}

    def exec_module(self, module: ModuleType) -> None:
        values = vars(module)

        def __getattr__(name: str) -> Any:
            home = self._homes.get(name)
            if home is None:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            if not home:
                raise NameOffError(
                    f"{module.__name__}.{name} is not in this release of Graphwright; leave it out, or update it"
                )
            value = values[name] = getattr(import_module(home), name)
            return value

        here = sorted(name for name, home in self._homes.items() if home)
        values.update(__getattr__=__getattr__, __all__=here, __dir__=lambda: here)


def install() -> None:
    """Make `sonika_ai_toolkit` and everything under it lead here; does nothing when it already does.

    Raises:
        ConfigurationError: a real `sonika_ai_toolkit` package is loaded or installed.
    """
    if any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        return
    check_free(_THEIRS, __name__)
    sys.meta_path.insert(0, _AliasFinder())


def uninstall() -> None:
    """Take the paths away again; classes that were already imported go on working."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _AliasFinder)]
    forget(_THEIRS)


install()
