from graphwright.engine import PromptGraph, PromptNode, dump_graph, load_graph, parse_condition

graph = PromptGraph("triage", nodes=[PromptNode("read", instructions="Sort the report."), PromptNode("fix")])
graph.set_entry("read").when("read", "fix", parse_condition('kind == "bug" and confidence >= 0.7'))

text = dump_graph(graph, format="yaml")
print(text)
print(load_graph(text).to_config() == graph.to_config())
