"""Where people type at a terminal: line editing, history, and problems shown while they type. Needs prompt_toolkit."""

from __future__ import annotations

from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.validation import ValidationError, Validator

from graphwright.cli._console import InputCancelled, Parse
from graphwright.cli._text import one_line

__all__ = ["ToolkitConsole"]


class ToolkitConsole:
    """Asks with a prompt of prompt_toolkit. Text of several lines is ended by Alt-Enter."""

    def __init__(self) -> None:
        self._goals: PromptSession[str] = PromptSession(history=InMemoryHistory())

    async def ask(self, prompt: str, parse: Parse = str, *, default: str = "", multiline: bool = False) -> Any:
        session = self._goals if parse is str else PromptSession()
        try:
            # Nothing that was said by a model or a tool is read as markup.
            with patch_stdout(raw=True):
                text = await session.prompt_async(
                    FormattedText([("bold", f"{prompt} ")]),
                    default=default,
                    multiline=multiline,
                    bottom_toolbar=FormattedText([("", "Alt-Enter ends the text")]) if multiline else None,
                    validator=_Checks(parse),
                    validate_while_typing=False,
                    handle_sigint=False,
                )
        except KeyboardInterrupt:
            raise InputCancelled from None
        return parse(text.strip())


class _Checks(Validator):
    def __init__(self, parse: Parse) -> None:
        self._parse = parse

    def validate(self, document: Document) -> None:
        try:
            self._parse(document.text.strip())
        except ValueError as error:
            raise ValidationError(message=one_line(str(error), 200), cursor_position=len(document.text)) from None
