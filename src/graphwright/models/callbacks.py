"""Tell LangChain callbacks of a call to a model that is not LangChain's, as LangChain does for its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwright.models.base import ChatModel, ModelRequest

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AIMessageChunk

__all__ = ["CallReport", "start_report"]


class CallReport:
    """One call, as the callbacks see it."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    async def token(self, chunk: AIMessageChunk | str) -> None:
        """Report a piece of the answer."""
        from langchain_core.messages import AIMessageChunk
        from langchain_core.outputs import ChatGenerationChunk

        message = AIMessageChunk(content=chunk) if isinstance(chunk, str) else chunk
        await self._manager.on_llm_new_token(message.text, chunk=ChatGenerationChunk(message=message))

    async def end(self, message: AIMessage) -> None:
        """Report the whole answer."""
        from langchain_core.outputs import ChatGeneration, LLMResult

        await self._manager.on_llm_end(LLMResult(generations=[[ChatGeneration(message=message)]]))

    async def fail(self, error: BaseException) -> None:
        """Report that there is no answer."""
        from langchain_core.outputs import LLMResult

        await self._manager.on_llm_error(error, response=LLMResult(generations=[]))


async def start_report(model: ChatModel, request: ModelRequest) -> CallReport | None:
    """Report that the call begins; `None` when nobody is to be told, or the model tells by itself."""
    config = request.config
    if not config or not config.get("callbacks") or getattr(model, "reports_itself", False):
        return None
    from langchain_core.callbacks import AsyncCallbackManager

    configured = AsyncCallbackManager.configure(
        config["callbacks"], inheritable_tags=config.get("tags"), inheritable_metadata=config.get("metadata")
    )
    serialized = {"lc": 1, "type": "not_implemented", "id": ["graphwright", "models", type(model).__name__]}
    (manager,) = await configured.on_chat_model_start(serialized, [list(request.messages)], name=model.name)
    return CallReport(manager)
