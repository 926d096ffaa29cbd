"""One run: its request, the layers around it, its streams and its handle."""

from graphwright.runtime.request import RunRequest
from graphwright.runtime.run import Run, RunEvents
from graphwright.runtime.stack import Layer, build_stack

__all__ = ["Layer", "Run", "RunEvents", "RunRequest", "build_stack"]
