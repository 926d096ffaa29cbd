"""What to hint against in place of concrete classes: bots, language models, and a user interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from graphwright.orchestrator.response import BotResponse

__all__ = ["BaseInterface", "IBot", "IConversationBot", "ILanguageModel", "IOrchestratorBot"]


class IBot(ABC):
    """Anything that answers with a `BotResponse` and can be stopped."""

    @abstractmethod
    def abort(self) -> None:
        """Stop the stream that is going on."""


class IConversationBot(IBot):
    """A bot that keeps nothing between two calls: whoever calls it brings the conversation."""

    @abstractmethod
    def get_response(
        self, user_input: str, messages: Sequence[Any], logs: Sequence[str], **options: Any
    ) -> BotResponse:
        """Answer `user_input`, which comes after `messages`."""


class IOrchestratorBot(IBot):
    """A bot that pursues a goal on a thread, and can pause and go on."""

    @abstractmethod
    def astream_events(
        self,
        goal: str | None,
        mode: str = "ask",
        thread_id: str | None = None,
        images: Sequence[Any] | None = None,
        history: Sequence[Any] | None = None,
        context: str = "",
    ) -> AsyncGenerator[tuple[str, Any], None]:
        """Pursue a goal and yield `(mode, payload)` on the way; without one, go on with what the thread waits for."""

    @abstractmethod
    async def arun(
        self,
        goal: str,
        context: str = "",
        thread_id: str | None = None,
        images: Sequence[Any] | None = None,
        history: Sequence[Any] | None = None,
        mode: str = "auto",
    ) -> BotResponse:
        """Pursue a goal and return what came of it."""

    @abstractmethod
    def run(
        self,
        goal: str,
        context: str = "",
        thread_id: str | None = None,
        images: Sequence[Any] | None = None,
        history: Sequence[Any] | None = None,
        mode: str = "auto",
    ) -> BotResponse:
        """Do what `arun` does, for a caller that is not async."""

    @abstractmethod
    def set_resume_command(self, resume_data: Any) -> None:
        """Keep the answer with which the next `astream_events` without a goal goes on."""

    @abstractmethod
    async def a_prewarm(self) -> None:
        """Open the connection to the model, so that the first answer comes sooner. Never raises an `Exception`."""

    def get_graph_topology(self) -> dict[str, Any]:
        """Return the graph as `GraphTopology`."""
        raise NotImplementedError(f"{type(self).__name__} does not describe its graph")


class ILanguageModel(ABC):
    """A language model by the name of its provider; a bot needs its `model` attribute as well."""

    @abstractmethod
    def predict(self, prompt: str) -> str:
        """Answer a prompt with text."""


class BaseInterface(ABC):
    """A user interface that is told what an agent does. Nothing calls it by itself: call it from your stream loop."""

    @abstractmethod
    def on_thought(self, thought: str) -> None:
        """Show what the model thinks."""

    @abstractmethod
    def on_tool_start(self, tool_name: str, params: dict[str, Any]) -> None:
        """Show that a tool begins."""

    @abstractmethod
    def on_tool_end(self, tool_name: str, result: Any) -> None:
        """Show what a tool gave."""

    @abstractmethod
    def on_error(self, error: str) -> None:
        """Show an error."""

    @abstractmethod
    def on_interrupt(self, data: dict[str, Any]) -> Any:
        """Ask the user, and return the answer."""

    @abstractmethod
    def on_result(self, result: str) -> None:
        """Show the answer."""

    def on_retry(self, attempt: int, wait_s: float, reason: str) -> None:  # noqa: B027 - optional by design
        """Show that the provider is asked again after `wait_s` seconds."""

    def on_partial_response(self, text: str) -> None:  # noqa: B027 - optional by design
        """Show a text that is progress and not the answer."""
