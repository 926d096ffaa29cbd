from __future__ import annotations

import email
import smtplib
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage
from typing import Any

import pytest

from graphwright.exceptions import ConfigurationError
from graphwright.tools.builtin import EmailSMTPTool

controller = pytest.importorskip("aiosmtpd.controller", reason="install aiosmtpd")


@dataclass
class Mailbox:
    """An SMTP server on 127.0.0.1 and what it got."""

    port: int = 0
    got: list[tuple[list[str], EmailMessage]] = field(default_factory=list)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address.startswith("full@"):
            return "552 mailbox full"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        message = email.message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.got.append((list(envelope.rcpt_tos), message))
        return "250 OK"


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    box = Mailbox()
    running = controller.Controller(box, hostname="127.0.0.1", port=_free_port())
    running.start()
    box.port = running.port
    yield box
    running.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def mail_tool(box: Mailbox, **options: Any) -> EmailSMTPTool:
    given: dict[str, Any] = {"sender": "bot@example.com", "recipients": ["*@example.com"], "security": "none"}
    return EmailSMTPTool("127.0.0.1", port=box.port, **{**given, **options})


async def test_a_mail_arrives_as_it_was_written(mailbox: Mailbox, use: Any) -> None:
    told = await use(
        mail_tool(mailbox),
        to=["ann@example.com", "Bob@Example.com"],
        subject="Grüße",
        body="Hallo\n.\nEnde",
        reply_to="me@other.org",
    )

    assert told == "sent to ann@example.com, Bob@Example.com"
    ((to, message),) = mailbox.got
    assert to == ["ann@example.com", "Bob@Example.com"]
    assert (message["From"], message["Subject"], message["Reply-To"]) == ("bot@example.com", "Grüße", "me@other.org")
    assert message.get_content().replace("\r\n", "\n") == "Hallo\n.\nEnde\n"
    assert message["Message-ID"].endswith("@example.com>")


INJECTIONS: list[dict[str, Any]] = [
    {"subject": "hi\r\nBcc: eve@evil.org"},
    {"subject": "hi\nX: y"},
    {"subject": "hi\u2028X"},
    {"to": ["ann@example.com\r\nBcc: eve@evil.org"]},
    {"to": ["ann@example.com, eve@evil.org"]},
    {"to": ["eve@evil.org <ann@example.com>"]},
    {"to": ["eve@evil.org"]},
    {"to": ["ann@example.com", "eve@evil.org"]},
    {"to": ["ann@example.com.evil.org"]},
    {"to": ["ann@example.com>\nRCPT TO:<eve@evil.org"]},
    {"to": []},
    {"reply_to": "me@x.org\r\nBcc: eve@evil.org"},
]


@pytest.mark.parametrize("changed", INJECTIONS)
async def test_no_other_recipient_and_no_other_header_gets_in(
    changed: dict[str, Any], mailbox: Mailbox, use: Any
) -> None:
    args: dict[str, Any] = {"to": ["ann@example.com"], "subject": "hi", "body": "x", **changed}

    await use.error(mail_tool(mailbox), **args)

    assert mailbox.got == []


async def test_a_recipient_that_the_server_refuses_is_told(mailbox: Mailbox, use: Any) -> None:
    tool = mail_tool(mailbox)

    assert await use(tool, to=["ann@example.com", "full@example.com"], subject="s", body="b") == (
        "sent to ann@example.com; the server refused full@example.com"
    )
    assert await use.error(tool, to=["full@example.com"], subject="s", body="b") == (
        "the mail server refused full@example.com; nothing was sent"
    )


async def test_a_server_without_encryption_gets_nothing_by_default(mailbox: Mailbox, use: Any) -> None:
    tool = mail_tool(mailbox, security="starttls", user="bot", password="hunter2")

    error = await use.error(tool, to=["ann@example.com"], subject="s", body="b")

    assert "SMTPNotSupportedError" in error
    assert "hunter2" not in error + repr(tool)
    assert mailbox.got == []


async def test_with_encryption_the_login_follows_the_handshake(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[Any] = []

    class Server(smtplib.SMTP):
        def __init__(self, host: str, port: int, **_: Any) -> None:
            did.append((host, port))

        def starttls(self, *, context: ssl.SSLContext) -> tuple[int, bytes]:  # type: ignore[override]
            did.append(("starttls", context.verify_mode, context.check_hostname))
            return 220, b""

        def login(self, user: str, password: str, **_: Any) -> tuple[int, bytes]:
            did.append(("login", user, password))
            return 235, b""

        def send_message(self, *_: Any, **__: Any) -> dict[str, tuple[int, bytes]]:  # type: ignore[override]
            did.append("sent")
            return {}

        def __exit__(self, *_: Any) -> None:
            did.append("closed")

    monkeypatch.setattr(smtplib, "SMTP", Server)
    tool = EmailSMTPTool("mail", sender="a@x.org", recipients=["b@x.org"], user="u", password="p")

    await use(tool, to=["b@x.org"], subject="s", body="b")

    assert did == [("mail", 587), ("starttls", ssl.CERT_REQUIRED, True), ("login", "u", "p"), "sent", "closed"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"recipients": []}, "nobody could be written to"),
        ({"recipients": "*@example.com"}, "give a list"),
        ({"sender": "Bot <bot@example.com>"}, "one bare address"),
        ({"security": "ssl"}, "choose one of"),
        ({"user": "u"}, "together"),
        ({"user": "u", "password": "p"}, "unencrypted"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        mail_tool(Mailbox(port=25), **options)


def test_a_model_is_never_asked_for_a_login() -> None:
    tool = mail_tool(Mailbox(port=25))

    assert set(tool.spec.parameters["properties"]) == {"to", "subject", "body", "reply_to"}
    assert tool.risk_level == 1
