"""Take credentials out of what is recorded, traced, or shown to a person who approves."""

from graphwright._internal.redact import REDACTED, is_secret_key, redact, redact_text

__all__ = ["REDACTED", "is_secret_key", "redact", "redact_text"]
