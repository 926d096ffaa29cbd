"""Sign what goes to a webhook, and tell a signed message from a forged, an old or a repeated one."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping

from graphwright.exceptions import ConfigurationError

__all__ = ["NONCE_HEADER", "SIGNATURE_HEADER", "TIMESTAMP_HEADER", "SignatureChecker", "signed_headers"]

SIGNATURE_HEADER = "X-Approval-Signature"
TIMESTAMP_HEADER = "X-Approval-Timestamp"
NONCE_HEADER = "X-Approval-Nonce"

_VERSION = "v1="


def signed_headers(secret: str | bytes, body: bytes, *, at: float | None = None) -> dict[str, str]:
    """Return the headers that sign `body`: the signature covers the time, a nonce and the body."""
    timestamp, nonce = str(int(time.time() if at is None else at)), secrets.token_hex(16)
    signature = _VERSION + _digest(secret, timestamp, nonce, body)
    return {TIMESTAMP_HEADER: timestamp, NONCE_HEADER: nonce, SIGNATURE_HEADER: signature}


def _digest(secret: str | bytes, timestamp: str, nonce: str, body: bytes) -> str:
    key = secret.encode() if isinstance(secret, str) else secret
    return hmac.new(key, f"{timestamp}.{nonce}.".encode() + body, hashlib.sha256).hexdigest()


class SignatureChecker:
    """Checks signed messages, for the receiver of a webhook; each message is taken once."""

    def __init__(self, secret: str | bytes, *, max_age: float = 300.0, clock: Callable[[], float] = time.time) -> None:
        """Check against `secret`. `max_age` is the most seconds between the clocks of sender and receiver."""
        if not secret or not isinstance(secret, (str, bytes)):
            raise ConfigurationError("secret is empty; give the secret that sender and receiver share")
        self._secret = secret
        self._max_age = max_age
        self._clock = clock
        self._seen: dict[str, float] = {}
        self._lock = threading.Lock()

    def problem(self, headers: Mapping[str, str], body: bytes) -> str:
        """Return why the message is not to be trusted; empty when it is. A second look at one message is a repeat."""
        given = {key.lower(): value for key, value in headers.items()}
        signature = given.get(SIGNATURE_HEADER.lower(), "")
        timestamp, nonce = given.get(TIMESTAMP_HEADER.lower(), ""), given.get(NONCE_HEADER.lower(), "")
        if not signature or not nonce or not (timestamp.isascii() and timestamp.isdigit()):
            return "it is not signed"
        expected = _VERSION + _digest(self._secret, timestamp, nonce, body)
        if not hmac.compare_digest(signature.encode(), expected.encode()):
            return "its signature is wrong"
        now = self._clock()
        if abs(now - int(timestamp)) > self._max_age:
            return f"it is more than {self._max_age:g} seconds old, or from the future"
        with self._lock:
            # A message may lie up to `max_age` in the future, and be repeated until it is that old.
            self._seen = {key: until for key, until in self._seen.items() if until >= now}
            if nonce in self._seen:
                return "it was sent before"
            self._seen[nonce] = int(timestamp) + self._max_age
        return ""
