"""Decide what a run that has ended gives back: an answer, or the error that says why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.engine._run import GraphRun, Stop
from graphwright.engine.result import RunResult
from graphwright.exceptions import GraphExecutionError, GraphIterationLimitError, RunAbortedError
from graphwright.messages import AIMessage, text_of

__all__ = ["finish"]


def finish(run: GraphRun) -> RunResult:
    """Return the result of a run.

    Raises:
        GraphIterationLimitError: a limit ended the run before there was an answer.
        RunAbortedError: `abort(drain=True)` ended the run before there was an answer.
        GraphStoppedError: a hook ended the run before there was an answer.
        GraphExecutionError: the run ended on a failed node, without an answer.
    """
    answered = _is_answer(run)
    if run.stop is not None and not answered:
        if run.stop.kind == "abort":
            error = RunAbortedError("the run was ended before it had an answer", run_id=run.context.run_id)
            error.messages = run.state.messages
            raise error
        raise _without_answer(run, run.stop)
    last = run.last
    if not answered and last is not None and last.error_recovered and last.error is not None:
        # Its error route led straight to the end: that ends the run, and makes no answer of the failure.
        raise run.error(last.error, node_name=last.node_name, cause=last.cause)
    if not answered:
        _answer_from_output(run)
    return RunResult.of(run, error=run.stop.reason if run.stop is not None else run.context.spent.note)


def _is_answer(run: GraphRun) -> bool:
    last = run.state.messages[-1]
    if last is run.last_input or last.type != "ai" or last.tool_calls:
        return False
    return bool(last.content) if isinstance(last.content, str) else bool(text_of(last) or last.content)


def _answer_from_output(run: GraphRun) -> None:
    """Turn the output of the last node into the reply, where the node wrote none itself."""
    output = run.last.output if run.last is not None else None
    if isinstance(output, str) and output:
        text = output
    elif isinstance(output, (Mapping, list)) and output:
        text = dumps(output)
    else:
        return
    run.state.messages.append(AIMessage(content=text))


def _without_answer(run: GraphRun, stop: Stop) -> GraphExecutionError:
    graph = run.state.graph.name
    node = run.last.node_name if run.last is not None else run.state.current_node
    pending = _unseen_tools(run)
    waiting = f" before the model saw the results of {', '.join(pending)}" if pending else " before there was an answer"
    if stop.kind == "hook":
        return stop.raises(
            f"graph {graph!r} was stopped by {stop.stopped_by}{waiting}: {stop.reason}",
            reason=stop.reason,
            stopped_by=stop.stopped_by,
            pending_tools=pending,
            graph_name=graph,
            node_name=node,
            error=stop.reason,
        )
    return GraphIterationLimitError(
        f"graph {graph!r} reached {stop.reason}{waiting}; raise the limit or give the model less to do",
        limit=stop.limit,
        pending_tools=pending,
        graph_name=graph,
        node_name=node,
        error=f"reached {stop.reason}",
    )


def _unseen_tools(run: GraphRun) -> list[str]:
    names: list[Any] = []
    for message in reversed(run.state.messages):
        if message.type != "tool":
            break
        names.append(message.name or "unknown")
    return names[::-1]
