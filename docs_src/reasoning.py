from graphwright.engine import PromptGraph, PromptGraphEngine, PromptNode
from graphwright.engine.reasoning_nodes import CritiqueNode, SynthesizeNode
from graphwright.testing import ScriptedModel, calls, says

graph = PromptGraph(
    "letter",
    nodes=[
        PromptNode(
            "draft", instructions="Draft a letter.", input_keys=["critique"], default_next="critic", is_entry=True
        ),
        CritiqueNode(
            "critic", transitions={"revise": "draft", "error": "final"}, default_next="final", max_iterations=2
        ),
        SynthesizeNode("final"),
    ],
)

model = ScriptedModel(
    [
        says("Dear all, pay up."),
        calls("final_answer", weaknesses=["rude"], severity=0.9),
        says("Dear all, please pay by Friday."),
        calls("final_answer", weaknesses=[], severity=0.1),
        says('Dear all, please pay by Friday. Thank you.\n{"confidence": 0.9, "sources": ["draft"]}'),
    ]
)
result = PromptGraphEngine(graph, model).invoke("Remind the members of the fee.")

print(" -> ".join(result.report.nodes_visited))
print(result.text)
print(result.output["confidence"])
print(result.context["critique"]["severity"])
