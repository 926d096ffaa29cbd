"""Turn what a cache keeps into bytes and back, and encrypt them where asked to."""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from operator import mul
from typing import Any

from graphwright.exceptions import ConfigurationError, MissingExtraError

__all__ = ["Kept", "Sealer", "likeness", "pack", "unit", "unpack"]

_NONCE = 12
_SIZE = struct.Struct("<I")


_dot: Callable[[Sequence[float], Sequence[float]], float] = getattr(
    math, "sumprod", lambda one, other: sum(map(mul, one, other))
)


@dataclass(frozen=True, slots=True)
class Kept:
    """One answer as it is kept."""

    question: str
    text: str
    output: Any
    stored_at: float
    vector: Sequence[float] | None = None
    """That of the question, of length 1."""


def pack(kept: Kept) -> bytes:
    """Return an answer as bytes: the size of the vector, the vector, and the rest as JSON.

    Raises:
        TypeError: its output is no plain data, or would not come back as it is.
    """
    rest = json.dumps([kept.question, kept.text, kept.output, kept.stored_at], allow_nan=False)
    if json.loads(rest)[2] != kept.output:
        raise TypeError(f"the output {type(kept.output).__name__} does not survive JSON")
    vector = kept.vector or ()
    return struct.pack(f"<I{len(vector)}f", len(vector), *vector) + rest.encode()


def unpack(value: bytes) -> Kept:
    """Return the answer that `pack` wrote."""
    (size,) = _SIZE.unpack_from(value)
    return Kept(*json.loads(value[_SIZE.size + 4 * size :]))


def likeness(vector: Sequence[float], value: bytes) -> float:
    """Return the cosine of a vector of length 1 and that of a packed answer; 0 where they cannot be compared."""
    (size,) = _SIZE.unpack_from(value)
    return _dot(vector, struct.unpack_from(f"<{size}f", value, _SIZE.size)) if size == len(vector) else 0.0


def unit(vector: Sequence[float]) -> tuple[float, ...] | None:
    """Return the vector with the length 1; `None` for one that has no direction."""
    made = tuple(map(float, vector))
    length = math.sqrt(_dot(made, made))
    return tuple(each / length for each in made) if 0 < length < math.inf else None


class Sealer:
    """Makes the names of places, and encrypts values with AES-256-GCM where there is a key."""

    def __init__(self, key: str | bytes | None, *, encrypt: bool) -> None:
        """Take a key: 32 bytes, or their base64. Without one, a key that ends with the process is made."""
        self._cipher: Any = None
        self._name_key = b""
        if not encrypt:
            return
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise MissingExtraError("encrypt_values=True", extra="crypto", package="cryptography") from error
        raw = os.urandom(32) if key is None else _key_bytes(key)
        self._cipher = AESGCM(blake2b(raw, digest_size=32, person=b"cache values").digest())
        # A user id is guessed easily; with a secret in it, its digest tells nobody whose answers they are.
        self._name_key = blake2b(raw, digest_size=32, person=b"cache names").digest()

    def name(self, *parts: str) -> str:
        """Return a digest of texts that no other texts have, wherever one ends and the next begins."""
        data = json.dumps(parts).encode()
        return blake2b(data, digest_size=16, key=self._name_key).hexdigest()

    def seal(self, value: bytes, *place: str) -> bytes:
        """Return the value encrypted; it can be read only in its place."""
        if self._cipher is None:
            return value
        nonce = os.urandom(_NONCE)
        sealed: bytes = self._cipher.encrypt(nonce, value, "/".join(place).encode())
        return nonce + sealed

    def open(self, value: bytes, *place: str) -> bytes:
        """Return the value that `seal` was given.

        Raises:
            Exception: it was sealed with another key or for another place, or was changed since.
        """
        if self._cipher is None:
            return value
        opened: bytes = self._cipher.decrypt(value[:_NONCE], value[_NONCE:], "/".join(place).encode())
        return opened


def _key_bytes(key: str | bytes) -> bytes:
    raw = key
    if not (isinstance(key, bytes) and len(key) == 32):
        try:
            raw = base64.urlsafe_b64decode(key)
        except (binascii.Error, ValueError, TypeError):
            raw = b""
    if not isinstance(raw, bytes) or len(raw) != 32:
        raise ConfigurationError(
            "encryption_key cannot be used; give 32 random bytes or their base64, such as "
            "base64.urlsafe_b64encode(os.urandom(32))"
        )
    return raw
