"""Let the runs of a front door be watched: what `observe`, `observer`, `observer_agent_id` and `events` ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphwright.exceptions import FeatureOffError

if TYPE_CHECKING:
    from graphwright.engine.execution import PromptGraphEngine
    from graphwright.observability import ObservabilityCollector, Watch
    from graphwright.runtime.stack import Layer

__all__ = ["Watched", "watch_options"]


class Watched:
    """What both front doors offer of their runs: the record, its figures, its report."""

    collector: ObservabilityCollector | None = None
    """What was recorded; `None` while nothing is."""

    _watch: Watch | None = None

    def get_stats(self) -> dict[str, Any]:
        """Return statistics of what was recorded; empty while nothing is."""
        return self._watch.get_stats() if self._watch is not None else {}

    def generate_report(self, path: str | Path, title: str = "Agent Observability Report") -> str:
        """Write what was recorded to `path` as a page, and return the path. A file that is there is replaced.

        Raises:
            FeatureOffError: nothing is recorded.
            OSError: the file cannot be written.
        """
        if self._watch is None:
            raise FeatureOffError("generate_report() needs recorded events; build it with observe=True")
        return self._watch.report(path, title)

    def _watched_by(self, watch: Watch | None, engine: PromptGraphEngine, *, asks_cache: bool = False) -> Layer | None:
        """Take what watches the runs, and return the layer that lets it."""
        self._watch = watch
        if watch is None:
            return None
        from graphwright.runtime.layers.observe import observe_layer

        self.collector = watch.collector
        return observe_layer(
            watch.watchers,
            agent_id=watch.agent_id or engine.agent_id or engine.graph.name,
            model_name=engine.model.name if engine.model is not None else "",
            asks_cache=asks_cache,
        )

    async def _unwatch(self) -> None:
        """Bring what was recorded to its place, and deliver what is to be told."""
        if self._watch is not None:
            await self._watch.close()


def watch_options(
    *, observe: Any = None, observer: Any = None, observer_agent_id: Any = None, events: Any = None
) -> Watch | None:
    """Return what watches an agent; `None`, without loading anything, where nothing does.

    Raises:
        ConfigurationError: one of the options does not fit.
        MissingExtraError: a transporter needs a package that is not installed.
    """
    if observer is None and observer_agent_id is None and events is None and observe in (None, False):
        return None
    from graphwright.observability import watch_of

    return watch_of(observe=observe, observer=observer, observer_agent_id=observer_agent_id, events=events)
