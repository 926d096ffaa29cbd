import graphwright.compat.promptise  # makes the paths below lead to graphwright
import graphwright.engine.graph
from promptise.engine.graph import PromptGraph

print(PromptGraph is graphwright.engine.graph.PromptGraph)
