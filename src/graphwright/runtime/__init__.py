"""One run: its request, the layers around it, its streams and its handle."""

from graphwright.runtime.durable import NOTHING, Durability, Resume, abandon_run, find_run
from graphwright.runtime.layers.cache import CacheUse
from graphwright.runtime.layers.store import Turn
from graphwright.runtime.request import RunRequest
from graphwright.runtime.run import Run, RunEvents
from graphwright.runtime.stack import Layer, build_stack
from graphwright.runtime.watching import Watched, watch_options

__all__ = [
    "NOTHING",
    "CacheUse",
    "Durability",
    "Layer",
    "Resume",
    "Run",
    "RunEvents",
    "RunRequest",
    "Turn",
    "Watched",
    "abandon_run",
    "build_stack",
    "find_run",
    "watch_options",
]
