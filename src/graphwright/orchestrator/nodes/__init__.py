"""The nodes of a bot's graph, one a file."""

from graphwright.orchestrator.nodes.agent import AgentNode
from graphwright.orchestrator.nodes.ask_user import AskUserNode
from graphwright.orchestrator.nodes.output_guard import OutputGuardNode
from graphwright.orchestrator.nodes.plan import PlanNode
from graphwright.orchestrator.nodes.tools import ToolsNode
from graphwright.orchestrator.nodes.verify import VerifyNode

__all__ = ["AgentNode", "AskUserNode", "OutputGuardNode", "PlanNode", "ToolsNode", "VerifyNode"]
