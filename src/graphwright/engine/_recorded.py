"""A visit in a run that has a log: read from it when an earlier leg made it, else made and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.engine._delta import Mark, apply_delta
from graphwright.engine._step import visit
from graphwright.engine.journal import Frame
from graphwright.exceptions import GraphwrightError
from graphwright.messages import SystemMessage

if TYPE_CHECKING:
    from graphwright.engine._run import GraphRun
    from graphwright.engine.base import NodeContext
    from graphwright.engine.state import GraphState

__all__ = ["enter", "leave", "recorded_visit"]

UNKNOWN = (
    "step {name!r} was cut off while it ran, so what it did is unknown; it is not run again by itself. "
    "Set reenterable=True on the node if running it again is safe"
)


async def recorded_visit(run: GraphRun, node: Any) -> str:
    """Return the node after this visit, as `visit` does, without making again what is in the log.

    Raises:
        GraphExecutionError: the node failed and nothing takes the failure.
    """
    entered = enter(run, node, node.name)
    if isinstance(entered, str):
        return entered
    mark, frame = entered
    if not getattr(node, "reenterable", False):
        if frame.journal.find("started", frame.path) is not None:
            node = _CutOff(node)
        else:
            frame.journal.put("started", frame.path, "", {})
            await frame.journal.flush()
    next_name = await visit(run, node)
    leave(run, node, frame, mark, next_name)
    return next_name


def enter(run: GraphRun, node: Any, label: str) -> str | tuple[Mark, Frame]:
    """Begin a visit: return where it led if the log has it, else its frame and the state as it is now."""
    context = run.context
    journal = context.journal
    assert journal is not None
    count = run.state.node_iterations.get(node.name, 0) + 1
    frame = Frame(journal, f"{context.outer_frame}{label}#{count}", node)
    context.frame = frame
    data = journal.find("delta", frame.path)
    if data is None:
        return Mark(run), frame
    _show_again(node, context, run.state)
    next_name = apply_delta(run, journal, frame.path, data)
    _restore(node, context, run.state, data.get("loop"))
    context.frame = None
    if not context.outer_frame:
        journal.note(run.state.messages)
    return next_name


def leave(run: GraphRun, node: Any, frame: Frame, mark: Mark, next_name: str) -> None:
    """Write what the visit changed."""
    context = run.context
    data = mark.delta(run, frame, next_name)
    kept = _kept(node, context, run.state)
    if kept is not None:
        data["loop"] = kept
    frame.journal.put("delta", frame.path, "", data)
    context.frame = None
    if not context.outer_frame:
        frame.journal.note(run.state.messages)


def _kept(node: Any, context: NodeContext, state: GraphState) -> dict[str, Any] | None:
    """Return what a node that runs again keeps between its visits, beside the state."""
    kept: dict[str, Any] = {}
    scratch = context.scratch
    run = scratch.get(node) if node.__hash__ is not None else None
    if run is not None and getattr(run, "looping", False):
        kept["n"] = [run.tools_used, run.corrections]
        if run.system is not None and not run.system_kept and run.system is not run.binding.system:
            kept["system"] = run.system.content
        run.system_kept = True
    elif run is not None and hasattr(run, "system_kept"):
        run.system_kept = False
    for what in ("asides", "exchange"):
        held = scratch.get((node, what))
        if held:
            places = {id(message): place for place, message in enumerate(state.messages)}
            kept[what] = [places[id(message)] for message in held if id(message) in places]
    return kept or None


def _restore(node: Any, context: NodeContext, state: GraphState, kept: dict[str, Any] | None) -> None:
    scratch = context.scratch
    for what in ("asides", "exchange"):
        scratch.pop((node, what), None)
    run = scratch.get(node)
    if kept is None:
        if run is not None and hasattr(run, "looping"):
            run.looping = False
        return
    for what in ("asides", "exchange"):
        if what in kept:
            scratch[node, what] = [state.messages[place] for place in kept[what]]
    if "n" not in kept:
        return
    from graphwright.engine.nodes._binding import begin_late_view, begin_run

    if run is None:
        run = scratch[node] = begin_run(node, context, state)
    run.tools_used, run.corrections = kept["n"]
    if "system" in kept:
        run.system = SystemMessage(content=kept["system"])
    elif not run.looping:
        run.system = run.binding.system
    run.looping = True
    run.system_kept = True
    if run.view is None and run.binding.compaction is not None and run.tools_used:
        begin_late_view(node, run, state)


def _show_again(node: Any, context: NodeContext, state: GraphState) -> None:
    """Let a compacted view take in what it was shown before this visit, so that it folds at the same places."""
    run = context.scratch.get(node)
    view = getattr(run, "view", None)
    if run is not None and view is not None:
        if not run.looping:
            view.enter()
        view.show(state, run.system)


class _CutOff:
    """Stands for a node whose visit was cut off: it fails, with everything else of the node in place."""

    def __init__(self, node: Any) -> None:
        self._node = node

    async def execute(self, state: GraphState, config: Any) -> Any:
        raise GraphwrightError(UNKNOWN.format(name=self._node.name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)
