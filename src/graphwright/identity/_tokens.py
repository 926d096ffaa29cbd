"""Read what a token says of itself, without trusting it: it is checked by whoever it is sent to."""

from __future__ import annotations

import base64
import json
from typing import Any

from graphwright.exceptions import IdentityError
from graphwright.identity.base import Credential

__all__ = ["checked", "claims_of"]


def claims_of(token: str) -> dict[str, Any]:
    """Return the claims of a JWT; empty for a token of another kind. The signature is not looked at."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        claims = json.loads(base64.urlsafe_b64decode(padded))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def checked(token: object, source: str, expires_at: float | None = None) -> Credential:
    """Return a credential, whose end is the earlier one of `expires_at` and what a JWT says.

    Raises:
        IdentityError: it is no text that a header can hold.
    """
    text = token.strip() if isinstance(token, str) else ""
    if not text or any(not "!" <= sign <= "~" for sign in text):
        what = "nothing" if token in (None, "") else f"a {type(token).__name__} that is no token"
        raise IdentityError(f"{source} gave {what}; it has to give a token as a text without spaces")
    ends = [end for end in (claims_of(text).get("exp"), expires_at) if isinstance(end, (int, float))]
    return Credential(text, float(min(ends)) if ends else None)
