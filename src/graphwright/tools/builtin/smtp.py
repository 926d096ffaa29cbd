"""A tool that sends e-mail through one SMTP server, to recipients that the developer allows."""

from __future__ import annotations

import re
import smtplib
import ssl
from collections.abc import Iterable
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field

from graphwright.exceptions import ConfigurationError, ToolError
from graphwright.tools.builtin._base import BuiltinTool, checked_count, checked_seconds

__all__ = ["EmailSMTPTool"]

# Stricter than what mail allows: no quotes, comments, lists or other characters that a header gives a meaning to.
_ADDRESS = re.compile(r"[A-Za-z0-9._%+'-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_PORTS = {"tls": 465, "starttls": 587, "none": 25}


class EmailSMTPTool(BuiltinTool):
    """Send plain-text mail from `sender` to addresses that fit `recipients`, such as "*@example.com".

    The password is given here, never by a model. The connection is encrypted and the server's certificate checked,
    unless `security="none"`, which takes no password.
    """

    tool_name = "send_email"
    risk_level = 1

    def __init__(
        self,
        host: str,
        *,
        sender: str,
        recipients: Iterable[str],
        port: int | None = None,
        user: str | None = None,
        password: str | None = None,
        security: Literal["starttls", "tls", "none"] = "starttls",
        tls_context: ssl.SSLContext | None = None,
        max_recipients: int = 10,
        max_chars: int = 100_000,
        connect_timeout: float = 30.0,
        name: str | None = None,
    ) -> None:
        if security not in _PORTS:
            raise ConfigurationError(f"security is {security!r}; choose one of {', '.join(_PORTS)}")
        if (user is None) != (password is None):
            raise ConfigurationError("give user and password together, or neither")
        if security == "none" and password is not None:
            raise ConfigurationError("security='none' would send the password unencrypted; use 'starttls' or 'tls'")
        if not _ADDRESS.fullmatch(sender):
            raise ConfigurationError(f"sender is {sender!r}; give one bare address, such as 'bot@example.com'")
        self._patterns = _patterns(recipients)
        self._max_recipients = checked_count(max_recipients, "max_recipients")
        self._max_chars = checked_count(max_chars, "max_chars")
        self._seconds = checked_seconds(connect_timeout, "connect_timeout")
        super().__init__(name=name)
        self._host, self._port = host, port or _PORTS[security]
        self._sender, self._security = sender, security
        self._user, self._password = user, password
        self._tls = tls_context

    def call(
        self,
        to: Annotated[list[str], Field(min_length=1)],
        subject: str,
        body: str,
        reply_to: str | None = None,
    ) -> str:
        """Send an e-mail of plain text.

        Args:
            to: The addresses of the recipients, without names.
            subject: One line.
            body: The text.
            reply_to: The address that an answer is to go to.
        """
        message = self._message(to, subject, body, reply_to)
        try:
            refused = self._send(message, to)
        except smtplib.SMTPAuthenticationError:
            raise ToolError("the mail server refused the login; nothing was sent") from None
        except smtplib.SMTPRecipientsRefused as error:
            raise ToolError(f"the mail server refused {', '.join(error.recipients)}; nothing was sent") from None
        except (smtplib.SMTPException, OSError) as error:
            raise ToolError(f"the mail could not be sent ({type(error).__name__}); nobody may have got it") from None
        sent = [address for address in to if address not in refused]
        text = f"sent to {', '.join(sent)}"
        return f"{text}; the server refused {', '.join(refused)}" if refused else text

    def _message(self, to: list[str], subject: str, body: str, reply_to: str | None) -> EmailMessage:
        if len(to) > self._max_recipients:
            raise ToolError(f"to has {len(to)} addresses; give at most {self._max_recipients}")
        for address in [*to, *([] if reply_to is None else [reply_to])]:
            if not _ADDRESS.fullmatch(address):
                raise ToolError(f"{address!r} is no plain address; give one such as 'name@example.com'")
        for address in to:
            if not any(fnmatchcase(address.lower(), pattern) for pattern in self._patterns):
                raise ToolError(
                    f"{address!r} may not be written to; allowed are {', '.join(self._patterns)}, set by whoever built "
                    "this agent"
                )
        if len(subject) > 300 or any(not char.isprintable() for char in subject):
            raise ToolError(f"subject is {subject[:80]!r}; give one line of at most 300 characters")
        if len(body) > self._max_chars:
            raise ToolError(f"body has {len(body)} characters; give at most {self._max_chars}")
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._sender, ", ".join(to), subject
        message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=self._sender.partition("@")[2])
        if reply_to is not None:
            message["Reply-To"] = reply_to
        message.set_content(body.encode(errors="replace").decode())
        return message

    def _send(self, message: EmailMessage, to: list[str]) -> dict[str, tuple[int, bytes]]:
        context = self._tls or ssl.create_default_context()
        server = (
            smtplib.SMTP_SSL(self._host, self._port, timeout=self._seconds, context=context)
            if self._security == "tls"
            else smtplib.SMTP(self._host, self._port, timeout=self._seconds)
        )
        with server:
            if self._security == "starttls":
                server.starttls(context=context)
            if self._user is not None and self._password is not None:
                server.login(self._user, self._password)
            return server.send_message(message, from_addr=self._sender, to_addrs=to)


def _patterns(recipients: Iterable[str]) -> tuple[str, ...]:
    if isinstance(recipients, str):
        raise ConfigurationError(f"recipients is {recipients!r}; give a list of addresses and patterns")
    patterns = tuple(entry.lower() for entry in recipients)
    if not patterns:
        raise ConfigurationError(
            "recipients is empty, so nobody could be written to; give '*@example.com' or addresses"
        )
    return patterns
