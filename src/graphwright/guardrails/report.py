"""What a scan found: kinds and places, and never the text that was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from graphwright.guardrails.base import Seam

__all__ = ["Finding", "GuardrailAction", "ScanReport", "Severity"]

Severity = Literal["low", "medium", "high"]


class GuardrailAction(StrEnum):
    """What a detector's finding leads to."""

    BLOCK = "block"
    REDACT = "redact"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found."""

    detector: str
    """`injection`, `pii`, `credentials`, `toxicity`, or the name of a rule of yours."""
    category: str
    """Which kind, such as `iban`."""
    action: GuardrailAction
    start: int = -1
    """Where in the author's text it begins; -1 where it is no place of its own."""
    end: int = -1
    score: float = 1.0


@dataclass(slots=True)
class ScanReport:
    """The result of one scan."""

    passed: bool = True
    """Whether nothing was found that blocks."""
    findings: list[Finding] = field(default_factory=list)
    duration_ms: float = 0.0
    scanners_run: list[str] = field(default_factory=list)
    text_length: int = 0
    redacted_text: str | None = None
    """The text without what is to be taken out; `None` where nothing is."""
    user_id: str | None = None
    session_id: str | None = None
    caller_roles: frozenset[str] = frozenset()
    scanners_skipped: list[str] = field(default_factory=list)
    """Scanners that are on and have nothing to work with, and those that failed where `fail_open` lets it pass."""
    failed: list[str] = field(default_factory=list)
    """Those of the skipped that failed."""
    direction: Seam = "input"

    @property
    def blocked(self) -> list[Finding]:
        """The findings that block."""
        return [finding for finding in self.findings if finding.action is GuardrailAction.BLOCK]

    @property
    def redacted(self) -> list[Finding]:
        """The findings that are taken out."""
        return [finding for finding in self.findings if finding.action is GuardrailAction.REDACT]

    @property
    def warnings(self) -> list[Finding]:
        """The findings that are only reported."""
        return [finding for finding in self.findings if finding.action is GuardrailAction.WARN]

    @property
    def summary(self) -> str:
        """Which kinds were found, without any of the text."""
        kinds = sorted({f"{finding.detector}:{finding.category}" for finding in self.findings})
        return ", ".join(kinds) or "nothing"
