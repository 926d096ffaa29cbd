"""Guards of what goes in and out of an agent: input, output, tool arguments, tool results and memory writes."""

from __future__ import annotations

from graphwright.exceptions import GuardrailViolation
from graphwright.guardrails.adapters import JudgeClassifier, OnnxClassifier, PresidioDetector
from graphwright.guardrails.base import Classifier, Guard, Guarded, GuardVerdict, MemoryWriteGuard, Seam
from graphwright.guardrails.detectors import (
    ClassifierDetector,
    CredentialDetector,
    Detector,
    InjectionDetector,
    Match,
    PIIDetector,
    Rule,
)
from graphwright.guardrails.judging import as_guards
from graphwright.guardrails.report import Finding, GuardrailAction, ScanReport
from graphwright.guardrails.run import RunGuards
from graphwright.guardrails.scanner import PromptiseSecurityScanner, SecurityScanner

__all__ = [
    "Classifier",
    "ClassifierDetector",
    "CredentialDetector",
    "Detector",
    "Finding",
    "Guard",
    "GuardVerdict",
    "Guarded",
    "GuardrailAction",
    "GuardrailViolation",
    "InjectionDetector",
    "JudgeClassifier",
    "Match",
    "MemoryWriteGuard",
    "OnnxClassifier",
    "PIIDetector",
    "PresidioDetector",
    "PromptiseSecurityScanner",
    "Rule",
    "RunGuards",
    "ScanReport",
    "Seam",
    "SecurityScanner",
    "as_guards",
]
