"""What guards look for, one kind a file."""

from __future__ import annotations

from graphwright.guardrails.detectors.base import Detector, Match, Rule
from graphwright.guardrails.detectors.classified import ClassifierDetector
from graphwright.guardrails.detectors.credentials import CREDENTIAL_PATTERNS, CredentialDetector
from graphwright.guardrails.detectors.injection import InjectionDetector
from graphwright.guardrails.detectors.pii import PII_PATTERNS, PIIDetector

__all__ = [
    "CREDENTIAL_PATTERNS",
    "PII_PATTERNS",
    "ClassifierDetector",
    "CredentialDetector",
    "Detector",
    "InjectionDetector",
    "Match",
    "PIIDetector",
    "Rule",
]
