"""The node whose model composes its own path through a pool of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphwright.engine._children import run_child
from graphwright.engine.base import BaseNode, NodeContext, context_of
from graphwright.engine.nodes._asking import ask_model, model_of
from graphwright.engine.nodes._model_call import provider_view
from graphwright.engine.nodes._path import Path, menu, read_choice
from graphwright.engine.state import GraphState, NodeFlag, NodeResult
from graphwright.exceptions import ConfigurationError, EmptyReplyError
from graphwright.messages import HumanMessage, SystemMessage

__all__ = ["AutonomousNode"]

WRITE_ANSWER = "All steps are done. Write the final answer to the question for its reader, from what was found above."


class AutonomousNode(BaseNode):
    """Lets the model choose the next node of a pool, runs it with its whole tool loop, and asks again.

    The choices are no part of the conversation. The run always ends with a written answer: that of a terminal node,
    else of `answer_node`, else of the model itself.
    """

    node_type = "autonomous"
    reenterable = True
    may_mutate = False

    def __init__(
        self,
        name: str = "autonomous",
        *,
        node_pool: Iterable[BaseNode] | None = None,
        planner_instructions: str = "",
        allow_repeat: bool = True,
        max_steps: int = 15,
        entry_node: str | None = None,
        terminal_nodes: Iterable[str] | None = None,
        answer_node: str | None = None,
        **base: Any,
    ) -> None:
        """Configure the node; keywords of `BaseNode` are taken as well.

        Without `entry_node` the first node of the pool with `is_entry` runs first; without `terminal_nodes` those
        with `is_terminal` end the run once they succeed. `answer_node` is the first terminal node when left out.
        """
        super().__init__(name, **base)
        self.node_pool = list(node_pool or ())
        self._pool = {node.name: node for node in self.node_pool}
        if not self._pool or len(self._pool) < len(self.node_pool):
            names = [node.name for node in self.node_pool]
            raise ConfigurationError(f"node_pool of node {name!r} is {names!r}; give nodes, each with its own name")
        if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:
            raise ConfigurationError(f"max_steps of node {name!r} is {max_steps!r}; give a whole number of at least 1")
        self.planner_instructions = planner_instructions
        self.allow_repeat = allow_repeat
        self.max_steps = max_steps
        entries = [n.name for n in self.node_pool if getattr(n, "is_entry", False)]
        self.entry_node = entry_node if entry_node is not None or not entries else entries[0]
        flagged = [n.name for n in self.node_pool if getattr(n, "is_terminal", False)]
        self.terminal_nodes = list(terminal_nodes) if terminal_nodes is not None else flagged
        self.answer_node = answer_node or (self.terminal_nodes[0] if self.terminal_nodes else None)
        for named in (self.entry_node, *self.terminal_nodes, self.answer_node):
            if named is not None and named not in self._pool:
                known = ", ".join(map(repr, self._pool))
                raise ConfigurationError(f"node {name!r} names {named!r}, which is not in its pool; it has {known}")

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Choose and run nodes until the model is done, then see to it that there is an answer."""
        context = context_of(config)
        result = NodeResult(self.name, "autonomous")
        path = Path(self.max_steps)
        result.output = path.output
        if self.entry_node is not None:
            await self._run(self.entry_node, "the entry", path, state, context, config, result)
        while not path.over and self._may_go_on(context, result):
            name, reason = await self._choose(path, state, context, result)
            if name is not None:
                await self._run(name, reason, path, state, context, config, result)
        if self._may_go_on(context, result) and not path.answered:
            await self._answer(path, state, context, config, result)
        return result

    @staticmethod
    def _may_go_on(context: NodeContext, result: NodeResult) -> bool:
        return result.error is None and context.spent.stop is None

    async def _choose(
        self, path: Path, state: GraphState, context: NodeContext, result: NodeResult
    ) -> tuple[str | None, str]:
        """Return the node that the model names and why; no node when it is done or named none that can run."""
        question = menu(self.node_pool, path, allow_repeat=self.allow_repeat)
        view = [*provider_view(self._system(context), state), HumanMessage(content=question)]
        reply = await ask_model(self, model_of(self, None, context), view, context, result)
        choice = read_choice(reply.text, self.node_pool)
        if choice.finished:
            path.finished = True
        elif choice.node is None:
            path.refuse(choice.problem, unreadable=choice.unreadable)
        elif not self.allow_repeat and choice.node in path.names:
            path.refuse(f"The step {choice.node!r} has run already and may run only once.")
        else:
            return choice.node, choice.reason
        return None, ""

    async def _run(
        self,
        name: str,
        reason: str,
        path: Path,
        state: GraphState,
        context: NodeContext,
        config: Any,
        result: NodeResult,
    ) -> NodeResult:
        node = self._pool[name]
        before = len(state.messages)
        done = await run_child(node, state, context, config, name=self.name)
        path.record(name, reason, done.error)
        path.answered = False
        if context.spent.stop is not None:
            return done
        if done.error is not None:
            if NodeFlag.CRITICAL in getattr(node, "flags", ()):
                _fail(result, done)
            return done
        path.finished = path.finished or name in self.terminal_nodes
        if name in self.terminal_nodes or name == self.answer_node:
            path.answered = self._take_answer(done, state, before, result)
        return done

    async def _answer(
        self, path: Path, state: GraphState, context: NodeContext, config: Any, result: NodeResult
    ) -> None:
        last = path.names[-1] if path.names else None
        if self.answer_node is not None and last != self.answer_node:
            done = await self._run(self.answer_node, "the answer", path, state, context, config, result)
            if context.spent.stop is not None:
                return
            if done.error is not None:
                _fail(result, done)
                return
            if path.answered:
                return
        view = [*provider_view(self._system(context), state), HumanMessage(content=WRITE_ANSWER)]
        reply = await ask_model(self, model_of(self, None, context), view, context, result, shown=True)
        if not reply.text or reply.calls:
            raise EmptyReplyError(f"the model wrote no final answer for node {self.name!r}; ask again")
        state.messages.append(reply.message)
        result.raw_output = state.context[f"{self.name}_output"] = reply.text

    def _take_answer(self, done: NodeResult, state: GraphState, before: int, result: NodeResult) -> bool:
        """Note the reply of a node that ends the run; return whether it wrote one."""
        last = state.messages[-1]
        if len(state.messages) == before or last.type != "ai" or last.tool_calls:
            return False
        result.raw_output = state.context[f"{self.name}_output"] = done.raw_output or last.text
        return True

    def _system(self, context: NodeContext) -> SystemMessage | None:
        parts = (context.instructions, self.planner_instructions or self.instructions)
        text = "\n\n".join(part for part in parts if part)
        return SystemMessage(content=text) if text else None


def _fail(result: NodeResult, done: NodeResult) -> None:
    result.error = f"the step {done.node_name!r} failed: {done.error}"
    if done.cause is not None:
        result.blame(done.cause)
