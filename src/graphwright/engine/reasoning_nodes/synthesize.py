"""The node that writes the final answer from everything that was gathered."""

from __future__ import annotations

from typing import Any

from graphwright._internal.jsonio import dumps
from graphwright.engine.base import NodeContext, context_of
from graphwright.engine.edges import END
from graphwright.engine.reasoning_nodes._asides import AsideNode, shown, with_emit
from graphwright.engine.reasoning_nodes._closing_block import HoldBack, split_closing
from graphwright.engine.reasoning_nodes._reading import share, texts
from graphwright.engine.state import GraphState, NodeResult

__all__ = ["SynthesizeNode"]

SYNTHESIZE_PROMPT = (
    "Write the final answer to the user's question from everything gathered so far. Name the sources of what you "
    "state, and say plainly what could not be found."
)
CLOSING = (
    "After the answer you may add, on lines of its own, one JSON object that the user will not see: "
    '{"confidence": <how sure you are, from 0 to 1>, "sources": [<the sources you used>]}.'
)
ALL_RESULTS = "Write the answer now. All tool results:\n{results}"


class SynthesizeNode(AsideNode):
    """Writes the final answer as plain text, which is the reply and `answer` of the output.

    `confidence` (or `None`) and `sources` are read from a JSON block that may close the text; the block is neither
    in the reply nor shown while it streams. With an `output_schema` the output is data of that type instead.
    """

    reenterable = True

    own_prompt = SYNTHESIZE_PROMPT
    own_output_key = "synthesis"

    def __init__(
        self,
        name: str = "synthesize",
        *,
        default_next: str | None = END,
        is_terminal: bool = True,
        include_observations: bool = False,
        **options: Any,
    ) -> None:
        """Configure the node; all keywords of `PromptNode` are taken.

        All tool results are shown to the model in any case; `include_observations` adds the newest to the system text.
        """
        if options.get("output_schema") is None:
            self._extra = CLOSING
        super().__init__(
            name,
            default_next=default_next,
            is_terminal=is_terminal,
            include_observations=include_observations,
            **options,
        )

    def aside(self, state: GraphState, context: NodeContext) -> str:
        """Show all tool results that the state holds."""
        if not state.observations:
            return ""
        lines = [f"- {seen['tool']}({dumps(seen['args'])}) = {shown(seen['result'])}" for seen in state.observations]
        return ALL_RESULTS.format(results="\n".join(lines))

    async def execute(self, state: GraphState, config: Any) -> NodeResult:
        """Write the answer; a listener sees its text as it is written, without a closing block."""
        emit = context_of(config).emit
        if emit is None or self.output_schema is not None:
            return await super().execute(state, config)
        held = HoldBack(emit)
        result = await super().execute(state, with_emit(config, held))
        await held.flush()
        return result

    def _add_answer(self, message: Any, state: GraphState, result: NodeResult) -> None:
        if self.output_schema is None and isinstance(result.output, str):
            closed = split_closing(result.output)
            if closed.text != result.output:
                message = message.model_copy(update={"content": closed.text})
            result.raw_output = closed.text
            result.output = _fields(closed.text, closed.data or {})
        super()._add_answer(message, state, result)


def _fields(answer: str, data: dict[str, Any]) -> dict[str, Any]:
    try:
        confidence = share(data["confidence"])
    except (KeyError, ValueError):
        confidence = None
    return {"answer": answer, "confidence": confidence, "sources": texts(data.get("sources"))}
