import graphwright
import graphwright.compat.sonika  # makes the path below lead to graphwright
from sonika_ai_toolkit import OrchestratorBot

print(OrchestratorBot is graphwright.OrchestratorBot)
