import asyncio

from graphwright import PromptGraphEngine
from graphwright.engine import GraphBudgetExceededError, build_react_graph
from graphwright.engine.hooks import BudgetHook, MetricsHook
from graphwright.testing import ScriptedModel, calls, says


def search(words: str) -> str:
    """Search the archive."""
    return f"nothing about {words}"


async def main() -> None:
    # Each scripted answer reports 15 tokens.
    model = ScriptedModel([calls("search", words="gold"), calls("search", words="silver"), says("There is none.")])
    metrics = MetricsHook()
    hooks = [metrics, BudgetHook(max_tokens=40, cost_per_1k_tokens=0.002)]
    engine = PromptGraphEngine(build_react_graph([search]), model, hooks=hooks)
    result = await engine.ainvoke("What is in the archive?")
    print(result.text, "|", result.report.error)

    model = ScriptedModel([calls("search", words="gold"), calls("search", words="silver")])
    engine = PromptGraphEngine(build_react_graph([search]), model, hooks=[metrics, BudgetHook(max_tokens=20)])
    try:
        await engine.ainvoke("What is in the archive?")
    except GraphBudgetExceededError as error:
        print(error.reason, "|", error.pending_tools)
    print(metrics.summary()["reason"]["total_tokens"])


asyncio.run(main())
