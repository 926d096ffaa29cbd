"""One llama.cpp model in this process: loaded once, worked by one thread, and stopped when nobody listens."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

from graphwright.exceptions import ConfigurationError, ModelError
from graphwright.models.constrained import Written
from graphwright.usage import Usage

__all__ = ["LlamaRuntime", "runtime_for"]

_runtimes: dict[tuple[Any, ...], LlamaRuntime] = {}
_runtimes_lock = threading.Lock()


def runtime_for(file: Path, *, context: int, threads: int, gpu_layers: int, batch: int) -> LlamaRuntime:
    """Return the one runtime of this process for a file and the way it is loaded; nothing is loaded yet."""
    key = (file, context, threads, gpu_layers, batch)
    with _runtimes_lock:
        if key not in _runtimes:
            _runtimes[key] = LlamaRuntime(file, context=context, threads=threads, gpu_layers=gpu_layers, batch=batch)
        return _runtimes[key]


class LlamaRuntime:
    """One loaded model and the one thread that works with it."""

    def __init__(self, file: Path, *, context: int, threads: int, gpu_layers: int, batch: int) -> None:
        self._file = file
        self._context = context
        self._threads = threads
        self._gpu_layers = gpu_layers
        self._batch = batch
        self._server: Any = None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="graphwright-local")

    async def write(
        self, body: dict[str, Any], *, schema: dict[str, Any] | None = None
    ) -> AsyncGenerator[str | Written, None]:
        """Yield the text in pieces, then the whole; leaving early stops the model and waits until it has stopped."""
        await self._load()
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        job = _Job(body, schema, lambda piece: loop.call_soon_threadsafe(pieces.put_nowait, piece))
        running = self._worker.submit(job.run, self._server)
        ended = asyncio.Event()

        def end(_: Future[Written]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(ended.set)
                loop.call_soon_threadsafe(pieces.put_nowait, None)

        running.add_done_callback(end)
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
        finally:
            job.stop()
            running.cancel()
            await _wait_through(ended)
        yield running.result()

    async def _load(self) -> None:
        if self._server is not None:
            return
        loading = asyncio.get_running_loop().run_in_executor(self._worker, self._load_once)
        # A caller that gives up leaves the loading to whoever comes next.
        loading.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        await asyncio.shield(loading)

    def _load_once(self) -> None:
        if self._server is not None:
            return
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self._file)
        # A turn with tools asks two things whose prompts differ from the start; each keeps what it has read.
        params.n_parallel = 2
        params.n_ctx = 2 * self._context
        params.n_batch = self._batch
        params.n_ubatch = self._batch
        params.n_gpu_layers = self._gpu_layers
        params.cpuparams.n_threads = self._threads
        params.cpuparams_batch.n_threads = self._threads
        params.warmup = False
        params.fit_params = False
        params.enable_reasoning = 0
        params.cache_ram_mib = 0
        params.verbosity = -1
        # The runtime also listens on a free port of the loopback address; nobody is told the key.
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [secrets.token_urlsafe(32)]
        params.ui = False
        params.endpoint_slots = False
        # The binding holds the interpreter while it loads; with the file in memory that is a fraction of a second.
        self._read_ahead()
        try:
            self._server = xllamacpp.Server(params)
        except (RuntimeError, ValueError) as error:
            raise ConfigurationError(
                f"the file {str(self._file)!r} could not be loaded as a model; give a GGUF file of an instruct model "
                f"that fits into memory ({error})"
            ) from error

    def _read_ahead(self) -> None:
        """Read the file once, so that the system has it in memory."""
        buffer = bytearray(1 << 20)
        with self._file.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


class _Job:
    """One generation: runs in the runtime's thread and hands its pieces to the event loop."""

    def __init__(self, body: dict[str, Any], schema: dict[str, Any] | None, show: Callable[[str], object]) -> None:
        self._body = body
        self._schema = schema
        self._show = show
        self._stopped = threading.Event()
        self._parts: list[str] = []
        self._usage: Usage | None = None
        self._finish = ""
        self._error: BaseException | None = None

    def stop(self) -> None:
        """End the generation at the next token, or the next step of reading the prompt."""
        self._stopped.set()

    def run(self, server: Any) -> Written:
        """Generate until the model is done or `stop` was called."""
        body = self._body
        if self._schema is not None:
            body = {**body, "grammar": _grammar(self._schema)}
        try:
            if not self._stopped.is_set():
                server.handle_chat_completions(body, self._take)
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"the local model could not work on the request: {error}") from error
        if self._error is not None:
            raise self._error
        return Written(text="".join(self._parts), usage=self._usage, cut_off=self._finish == "length")

    def _take(self, chunk: dict[str, Any]) -> bool:
        """Take one chunk of the runtime; true ends the generation. Must not raise: the runtime would not notice."""
        try:
            if self._stopped.is_set():
                return True
            if "error" in chunk:
                self._error = _error_of(chunk["error"])
                return True
            self._read(chunk)
        except Exception as error:  # reported when the generation has ended
            self._error = error
            return True
        return False

    def _read(self, chunk: dict[str, Any]) -> None:
        for choice in chunk.get("choices", ()):
            text = choice["delta"].get("content")
            if text:
                self._parts.append(text)
                self._show(text)
            self._finish = choice.get("finish_reason") or self._finish
        usage = chunk.get("usage")
        if usage:
            self._usage = Usage(
                usage["prompt_tokens"],
                usage["completion_tokens"],
                usage["prompt_tokens"] + usage["completion_tokens"],
                (usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
            )


def _grammar(schema: dict[str, Any]) -> str:
    import xllamacpp

    # Without free whitespace the model cannot fill its answer with it; what the grammar cannot hold is left open.
    guided = {**schema, "x-guidance": {"whitespace_flexible": False, "lenient": True}}
    return cast(str, xllamacpp.json_schema_to_grammar(guided))


def _error_of(error: dict[str, Any]) -> ModelError:
    status = error.get("code")
    if error.get("type") == "exceed_context_size_error":
        return ModelError(
            f"the prompt has {error.get('n_prompt_tokens')} tokens and the context of the local model holds "
            f"{error.get('n_ctx')}; send less, or build the model with a larger context=",
            status=status,
        )
    return ModelError(f"the local model could not work on the request: {error.get('message', error)}", status=status)


async def _wait_through(ended: asyncio.Event) -> None:
    """Wait for `ended`, passing a cancellation on only afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not ended.is_set():
        try:
            await ended.wait()
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
