"""Have a model judge a text: the text is marked data, the verdict has a strict form, and nothing is guessed."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from graphwright._internal.jsonio import find_json
from graphwright.exceptions import ConfigurationError, GraphwrightError
from graphwright.messages import HumanMessage, SystemMessage
from graphwright.models import as_model, call_model
from graphwright.models.base import ChatModel, ModelRequest
from graphwright.orchestrator.language_models import as_language_model
from graphwright.usage import Usage

__all__ = ["Judge", "JudgeError", "Question", "pieces_of"]

logger = logging.getLogger(__name__)

V = TypeVar("V", bound=BaseModel)

_ATTEMPTS = 2
_AT_ONCE = 4


class JudgeError(GraphwrightError):
    """A model that was to judge gave no verdict."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What a judge is asked."""

    rules: str
    """How to judge; `{code}` stands for the code that the markers of the data carry."""
    data: Sequence[tuple[str, str]]
    """What is judged: name and text, each put between markers."""


class Judge(Generic[V]):
    """A model that answers with verdicts of one form."""

    def __init__(self, model: Any, form: type[V], *, timeout: float | None, objects: Callable[[V], bool]) -> None:
        """`timeout` is the seconds that one question may take; `objects` says whether a verdict is against the data."""
        is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
        if timeout is not None and not (is_number and timeout > 0):
            raise ConfigurationError(f"timeout is {timeout!r}; give seconds above 0, or None for no limit")
        self.model: ChatModel = as_model(as_language_model(model))
        self._form = form
        self._timeout = timeout
        self._objects = objects

    async def first_objection(
        self, questions: Sequence[Question], usage: Usage | None, *, gives_up: bool = True
    ) -> V | None:
        """Ask the questions, a few at once, and return the first verdict that objects, if one does.

        The tokens are added to `usage`. Where a question gets no verdict the rest is not asked, unless `gives_up` is
        False.

        Raises:
            JudgeError: nothing was objected to, but to some question there is no verdict.
        """
        failure: JudgeError | None = None
        for start in range(0, len(questions), _AT_ONCE):
            asked = (self._verdict(question, usage) for question in questions[start : start + _AT_ONCE])
            for verdict in await asyncio.gather(*asked):
                if isinstance(verdict, JudgeError):
                    failure = failure or verdict
                elif self._objects(verdict):
                    return verdict
            if failure is not None and gives_up:
                break
        if failure is not None:
            raise failure
        return None

    async def _verdict(self, question: Question, usage: Usage | None) -> V | JudgeError:
        failure = JudgeError("the judge was not asked")
        try:
            async with asyncio.timeout(self._timeout):
                for _ in range(_ATTEMPTS):
                    try:
                        return await self._ask(question, usage)
                    except JudgeError as error:
                        failure = error
                    except Exception as error:  # a model is foreign code; whoever asked decides what follows
                        logger.warning("the judge %r could not be asked", self.model.name, exc_info=True)
                        failure = JudgeError(f"the judge could not be asked: {type(error).__name__}")
        except TimeoutError:
            failure = JudgeError(f"the judge gave no verdict within {self._timeout:g} s")
        return failure

    async def _ask(self, question: Question, usage: Usage | None) -> V:
        code = secrets.token_hex(6)
        data = "\n".join(f"<{name}-{code}>\n{text}\n</{name}-{code}>" for name, text in question.data)
        request = ModelRequest(
            messages=[SystemMessage(content=question.rules.replace("{code}", code)), HumanMessage(content=data)],
            output_schema=self._form if self.model.capabilities.structured_output else None,
        )
        reply = await call_model(self.model, request)
        if usage is not None and reply.usage is not None:
            usage.add(reply.usage)
        verdict = None if reply.refusal else self._read(reply.text)
        if verdict is None:
            raise JudgeError("the judge's verdict could not be read")
        return verdict

    def _read(self, text: str) -> V | None:
        """Return the verdict in a text. Of several the one that objects counts: a judge may quote what it judges."""
        key = next(iter(self._form.model_fields))
        found = [value for value in find_json(text) if isinstance(value, dict) and key in value]
        verdicts: list[V] = []
        for value in found:
            try:
                verdicts.append(self._form.model_validate(value))
            except ValidationError:
                continue
        objection = next((verdict for verdict in verdicts if self._objects(verdict)), None)
        if objection is not None:
            return objection
        return verdicts[-1] if verdicts and len(verdicts) == len(found) else None


def pieces_of(text: str, size: int, overlap: int) -> list[str]:
    """Return the text in pieces of at most `size` characters; each repeats the last `overlap` of the one before."""
    if len(text) <= size:
        return [text]
    step = size - overlap
    return [text[start : start + size] for start in range(0, len(text) - overlap, step)]
