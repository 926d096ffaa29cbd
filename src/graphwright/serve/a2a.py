"""Agents across machines by the A2A protocol: serve one over HTTP, and ask one that somebody else serves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphwright._internal.aio import settle
from graphwright._internal.optional import is_installed
from graphwright.caller import CallerContext
from graphwright.exceptions import ConfigurationError, DelegationError, MissingExtraError
from graphwright.messages import AIMessage, as_messages, text_of

if TYPE_CHECKING:
    from graphwright.agent import Agent
    from graphwright.identity import AgentIdentity

__all__ = ["A2APeer", "a2a_app"]

logger = logging.getLogger(__name__)

_GIVING_UP_SECONDS = 2.0


def a2a_app(
    agent: Agent,
    *,
    url: str,
    name: str = "agent",
    description: str = "An agent.",
    version: str = "1",
    caller_of: Callable[[Any], CallerContext | None] | None = None,
) -> Any:
    """Return an ASGI app (Starlette) that answers A2A requests at `url`'s root, and shows the agent's card.

    Each message is a run of its own; a task that is cancelled ends its run. `caller_of(call_context)` says who
    asks, from the SDK's context of the request. Who may ask is for the server that the app is mounted in. Tasks are
    kept in memory. The agent is not shut down with the app.

    Raises:
        MissingExtraError: the SDK is missing.
        ConfigurationError: `caller_of` is no function.
    """
    _need_sdk()
    if caller_of is not None and not callable(caller_of):
        raise ConfigurationError(f"caller_of is {caller_of!r}; give a function that takes the context of a request")
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore
    from a2a.types import a2a_pb2 as words
    from starlette.applications import Starlette

    card = words.AgentCard(
        name=name,
        description=description,
        version=version,
        supported_interfaces=[words.AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=words.AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[words.AgentSkill(id="ask", name=name, description=description, tags=["agent"])],
    )
    handler = DefaultRequestHandler(
        agent_executor=_executor(agent, caller_of), task_store=InMemoryTaskStore(), agent_card=card
    )
    return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])


def _executor(agent: Agent, caller_of: Callable[[Any], CallerContext | None] | None) -> Any:
    from a2a.helpers import new_task_from_user_message, new_text_part
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.tasks import TaskUpdater

    class Executor(AgentExecutor):
        async def execute(self, context: Any, event_queue: Any) -> None:
            task = context.current_task
            if task is None:
                task = new_task_from_user_message(context.message)
                await event_queue.enqueue_event(task)
            updater = TaskUpdater(event_queue, task.id, task.context_id)

            def said(text: str) -> Any:
                return updater.new_agent_message([new_text_part(text)])

            await updater.start_work()
            run = agent.start(
                context.get_user_input(), caller=caller_of(context.call_context) if caller_of is not None else None
            )
            try:
                result = await run.result()
            except Exception as error:
                # What went wrong inside is for the owner of the agent, not for whoever asks it.
                logger.exception("the run %s has no answer", run.run_id)
                await updater.failed(said(f"the agent has no answer ({type(error).__name__}, run {run.run_id})"))
                return
            finally:
                await run.aclose()
            if result.status == "paused":
                await updater.failed(said(f"the agent waits for a person (run {result.run_id})"))
                return
            await updater.add_artifact([new_text_part(str(result.text))], name="answer")
            await updater.complete()

        async def cancel(self, context: Any, event_queue: Any) -> None:
            # The SDK has cancelled `execute` before, which ended the run.
            await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    return Executor()


class A2APeer:
    """An agent that somebody else serves by A2A: `CrossAgent(A2APeer(url))` makes it a peer."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        identity: AgentIdentity | None = None,
        audience: str | None = None,
        timeout: float = 300.0,
    ) -> None:
        """Prepare; nothing is sent yet. `url` is where its card is found.

        `identity` authenticates each request with its credential for `audience`. `timeout` is the most seconds
        without a sign of life.

        Raises:
            MissingExtraError: the SDK is missing.
            ConfigurationError: the URL is none.
        """
        _need_sdk()
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(f"the peer's url is {url!r}; it should begin with http:// or https://")
        self.url = url
        self._headers = dict(headers or {})
        self._identity, self._audience = identity, audience
        self._timeout = timeout

    async def ainvoke(self, input: Any, config: Any = None) -> dict[str, Any]:
        """Ask with the text of the last message, and return the conversation with the answer.

        Cancelling it cancels the peer's task.

        Raises:
            DelegationError: the peer cannot be reached, or has no answer.
        """
        import httpx
        from a2a.client import ClientConfig, create_client

        messages = as_messages(input["messages"] if isinstance(input, Mapping) else input)
        headers = dict(self._headers)
        if self._identity is not None:
            headers |= await self._identity.auth_header(self._audience)
        async with httpx.AsyncClient(headers=headers, timeout=self._timeout) as http:
            try:
                client = await create_client(self.url, ClientConfig(httpx_client=http))
                text = await self._ask(client, text_of(messages[-1]))
            except DelegationError:
                raise
            except Exception as error:  # the SDK and what is below it raise of many kinds
                raise DelegationError(f"the peer at {self.url!r} cannot be asked: {type(error).__name__}") from error
        return {"messages": [*messages, AIMessage(content=text)]}

    async def _ask(self, client: Any, text: str) -> str:
        question = _Question()
        reading = asyncio.get_running_loop().create_task(question.read(client, text))
        try:
            await asyncio.shield(reading)
        except asyncio.CancelledError:
            await settle(asyncio.get_running_loop().create_task(question.give_up(client, reading)))
            raise
        if not question.completed:
            said = f": {question.said}" if question.said else ""
            raise DelegationError(f"the peer at {self.url!r} has no answer ({question.state}){said}")
        return "".join(question.pieces)

    def __repr__(self) -> str:
        return f"A2APeer({self.url!r})"


class _Question:
    """One question to a peer, and what came back so far."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.completed = False
        self.state = "unspecified"
        self.said = ""
        """What the peer said of its state."""
        self._task_id = ""
        self._known = asyncio.Event()
        """Set once the peer has said which task it is."""

    async def read(self, client: Any, text: str) -> None:
        """Send the question, and read to the end of what comes back."""
        from a2a.helpers import get_message_text, get_stream_response_text, new_text_message
        from a2a.types import a2a_pb2 as words

        request = words.SendMessageRequest(message=new_text_message(text, role=words.ROLE_USER))
        async for event in client.send_message(request):
            if event.HasField("status_update"):
                status = event.status_update.status
                self._note(words, status.state)
                self.said = get_message_text(status.message)
                continue
            if event.HasField("task"):
                self._task_id = event.task.id
                self._note(words, event.task.status.state)
                self._known.set()
            elif event.HasField("message"):
                self._note(words, words.TASK_STATE_COMPLETED)
            found = get_stream_response_text(event)
            if found:
                self.pieces.append(found)

    def _note(self, words: Any, state: int) -> None:
        self.completed = state == words.TASK_STATE_COMPLETED
        self.state = words.TaskState.Name(state).removeprefix("TASK_STATE_").lower()

    async def give_up(self, client: Any, reading: asyncio.Task[None]) -> None:
        """Tell the peer that nobody waits any more; briefly, and whatever becomes of it."""
        from a2a.types import a2a_pb2 as words

        try:
            async with asyncio.timeout(_GIVING_UP_SECONDS):
                known = asyncio.get_running_loop().create_task(self._known.wait())
                try:
                    await asyncio.wait({known, reading}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    known.cancel()
                if self._task_id and not reading.done():
                    await client.cancel_task(words.CancelTaskRequest(id=self._task_id))
        except Exception as error:  # the question is given up all the same
            logger.info("the peer was not told that its task is cancelled: %s", type(error).__name__)
        finally:
            reading.cancel()
            await settle(reading)


def _need_sdk() -> None:
    if not is_installed("a2a.types.a2a_pb2") or not is_installed("starlette"):
        raise MissingExtraError("A2A", extra="a2a", package="a2a-sdk")
