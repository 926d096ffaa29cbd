"""The scanner in the box: personal data, credentials, injected instructions, and what a classifier is given for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from time import perf_counter
from typing import Any, Self

from graphwright._internal.jsonio import dumps
from graphwright.caller import get_current_caller, get_current_session_id
from graphwright.exceptions import ConfigurationError, GuardrailViolation
from graphwright.guardrails.adapters import as_classifier
from graphwright.guardrails.base import SEAMS, Guarded, GuardVerdict, Seam
from graphwright.guardrails.detectors import (
    CREDENTIAL_PATTERNS,
    PII_PATTERNS,
    ClassifierDetector,
    CredentialDetector,
    Detector,
    InjectionDetector,
    Match,
    PIIDetector,
    Rule,
)
from graphwright.guardrails.judging import is_panic
from graphwright.guardrails.redaction import json_strings, redacted
from graphwright.guardrails.report import Finding, GuardrailAction, ScanReport

__all__ = ["PromptiseSecurityScanner", "SecurityScanner"]

logger = logging.getLogger(__name__)


class SecurityScanner:
    """A guard for every seam. It holds settings only, so one serves any number of runs."""

    def __init__(
        self,
        *,
        detectors: Iterable[Detector] | None = None,
        custom_rules: Iterable[Rule | Callable[[str], Any]] = (),
        fail_open: bool = False,
        redact_input: bool = False,
        scan_tool_results: bool = False,
        scan_tool_arguments: bool = False,
        detect_injection: bool = True,
        detect_pii: bool = True,
        detect_toxicity: bool = True,
        detect_credentials: bool = True,
        injection_model: Any = None,
        toxicity_model: Any = None,
        injection_threshold: float = 0.85,
        toxicity_threshold: float = 0.7,
        on_injection: GuardrailAction | str = GuardrailAction.BLOCK,
        on_pii: GuardrailAction | str = GuardrailAction.REDACT,
        on_credentials: GuardrailAction | str = GuardrailAction.REDACT,
        on_toxicity: GuardrailAction | str = GuardrailAction.WARN,
        pii_patterns: Iterable[str] | Mapping[str, str] | None = None,
        credential_patterns: Iterable[str] | Mapping[str, str] | None = None,
        exclude_patterns: Iterable[str] = (),
        hold: str = "reply",
    ) -> None:
        """Choose what is looked for and what becomes of it.

        `detectors` take the place of those in the box; `custom_rules` come beside them. `injection_model` and
        `toxicity_model` are the folder of an ONNX model or an object with `classify`: without one, injection is found
        by its wording alone, and toxicity is not looked for. What is to be redacted is redacted in answers, results
        and memories; in what the user sends only with `redact_input`. `hold` is how much of an answer waits for the
        verdict: `"reply"`, or `"sentence"`, which shows each sentence once the text up to it has passed.

        Raises:
            ConfigurationError: an argument does not fit; the message names it.
        """
        if hold not in ("reply", "sentence"):
            raise ConfigurationError(f"hold is {hold!r}; use 'reply' or 'sentence'")
        _check_thresholds(injection_threshold=injection_threshold, toxicity_threshold=toxicity_threshold)
        self.fail_open, self.redact_input, self.hold = fail_open, redact_input, hold
        self.scan_tool_results, self.scan_tool_arguments = scan_tool_results, scan_tool_arguments
        self.seams = _seams(tool_result=scan_tool_results, tool_arguments=scan_tool_arguments)
        left_out = [exclude_patterns] if isinstance(exclude_patterns, str) else list(exclude_patterns)
        classifiers = [as_classifier(injection_model, name="injection_model")]
        classifiers.append(as_classifier(toxicity_model, name="toxicity_model"))
        in_the_box = {
            InjectionDetector(_action(on_injection), classifier=classifiers[0], threshold=injection_threshold): (
                detect_injection
            ),
            PIIDetector(_action(on_pii), patterns=pii_patterns, exclude=left_out): detect_pii,
            CredentialDetector(
                _action(on_credentials), patterns=credential_patterns, exclude=left_out
            ): detect_credentials,
            ClassifierDetector(
                "toxicity", classifiers[1], _action(on_toxicity), threshold=toxicity_threshold
            ): detect_toxicity,
        }
        chosen: list[Any] = [each for each, is_on in in_the_box.items() if is_on] if detectors is None else [*detectors]
        self.detectors = [_as_detector(each) for each in chosen]
        self.detectors += [_as_rule(rule, number) for number, rule in enumerate(custom_rules, 1)]

    @classmethod
    def default(cls, **options: Any) -> Self:
        """Return the scanner that `guardrails=True` stands for, with options of yours."""
        return cls(**options)

    @staticmethod
    def list_pii_patterns() -> list[str]:
        """Return the kinds of personal data that are known."""
        return sorted(PII_PATTERNS)

    @staticmethod
    def list_credential_patterns() -> list[str]:
        """Return the kinds of credentials that are known."""
        return sorted([*CREDENTIAL_PATTERNS, "secret_value", "high_entropy"])

    async def warmup(self) -> None:
        """Load the models of the detectors, so that the first message does not wait for them."""
        for detector in self.detectors:
            if detector.is_ready:
                await detector.warmup()

    async def check_input(self, text: str) -> str:
        """Return what the user sent as it may go on.

        Raises:
            GuardrailViolation: something in it blocks, or a detector cannot run.
        """
        return await self._checked(text, "input")

    async def check_output(self, text: str) -> str:
        """Return an answer without what is to be taken out.

        Raises:
            GuardrailViolation: something in it blocks, or a detector cannot run.
        """
        return await self._checked(text, "output")

    async def check_tool_result(self, name: str, text: str) -> str:
        """Return the result of the tool `name` without what is to be taken out.

        Raises:
            GuardrailViolation: something in it blocks, or a detector cannot run.
        """
        return await self._checked(text, "tool_result")

    async def check_memory_write(self, text: str) -> str:
        """Return what a memory may keep.

        Raises:
            GuardrailViolation: something in it blocks, or a detector cannot run.
        """
        return await self._checked(text, "memory_write")

    async def judge(self, guarded: Guarded) -> GuardVerdict:
        """Return the verdict on a text at any seam."""
        if guarded.seam == "tool_arguments":
            return await self._judge_arguments(guarded)
        report = await self.scan_text(guarded.text, direction=guarded.seam, before=guarded.before)
        if not report.passed:
            return GuardVerdict("deny", report.summary, report=report)
        if report.redacted_text is not None and self._takes_out(guarded.seam):
            return GuardVerdict("rewrite", report.summary, report.redacted_text, report=report)
        reason = report.summary if report.findings else ""
        if report.failed:
            reason = f"not judged by {', '.join(report.failed)}"
        return GuardVerdict("allow", reason, report=report, failed=bool(report.failed))

    async def scan_text(self, text: str, *, direction: Seam = "input", before: str = "") -> ScanReport:
        """Return what is found in a text, and change nothing.

        Raises:
            Exception: what a detector raised that cannot run, unless `fail_open`.
        """
        started = perf_counter()
        caller = get_current_caller()
        report = ScanReport(
            text_length=len(text),
            user_id=caller.user_id if caller is not None else None,
            session_id=get_current_session_id(),
            caller_roles=frozenset(caller.roles) if caller is not None else frozenset(),
            direction=direction,
        )
        for detector in self.detectors:
            if direction in detector.seams:
                await self._scan_with(detector, text, before, report)
        report.passed = not report.blocked
        if report.redacted:
            report.redacted_text = redacted(text, report.redacted)
        report.duration_ms = (perf_counter() - started) * 1000
        return report

    async def _scan_with(self, detector: Detector, text: str, before: str, report: ScanReport) -> None:
        if not detector.is_ready:
            report.scanners_skipped.append(detector.name)
            return
        try:
            matches = await _found(detector, text, before)
        except BaseException as error:  # a detector is foreign code
            if not self.fail_open or not (isinstance(error, Exception) or is_panic(error)):
                raise
            # What it raised may hold the text, so only its kind is told.
            kind = type(error).__name__
            logger.warning("detector %r failed (%s); the text is passed on without it", detector.name, kind)
            report.scanners_skipped.append(detector.name)
            report.failed.append(detector.name)
            return
        report.scanners_run.append(detector.name)
        report.findings += [
            Finding(detector.name, match.category, detector.action, match.start, match.end, match.score)
            for match in matches
        ]

    def _takes_out(self, seam: Seam) -> bool:
        return seam != "input" or self.redact_input

    async def _checked(self, text: str, seam: Seam) -> str:
        verdict = await self.judge(Guarded(seam, text))
        if verdict.action == "deny":
            raise GuardrailViolation(verdict.report, seam)
        return verdict.value if verdict.action == "rewrite" else text

    async def _judge_arguments(self, guarded: Guarded) -> GuardVerdict:
        """Judge every text in the arguments by itself, and take out where that is what is asked for."""
        found: list[str] = []

        async def checked(value: Any) -> Any:
            if isinstance(value, str):
                report = await self.scan_text(value, direction="tool_arguments")
                if report.findings:
                    found.append(report.summary)
                if not report.passed:
                    raise GuardrailViolation(report, "tool_arguments")
                return value if report.redacted_text is None else report.redacted_text
            if isinstance(value, dict):
                return {key: await checked(entry) for key, entry in value.items()}
            return [await checked(entry) for entry in value] if isinstance(value, list) else value

        arguments = guarded.arguments or {}
        try:
            # What stands under a telling key, such as a password, is seen in the whole only.
            whole = await self.scan_text(dumps(arguments), direction="tool_arguments")
            if not whole.passed:
                raise GuardrailViolation(whole, "tool_arguments")
            changed = await checked(arguments)
        except GuardrailViolation as violation:
            return GuardVerdict("deny", violation.report.summary, report=violation.report)
        if changed != arguments:
            return GuardVerdict("rewrite", ", ".join(sorted(set(found))), changed)
        return GuardVerdict(reason=", ".join(sorted(set(found))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({[detector.name for detector in self.detectors]}, fail_open={self.fail_open})"


PromptiseSecurityScanner = SecurityScanner
"""The name that the reference has for it."""


async def _found(detector: Detector, text: str, before: str) -> list[Match]:
    """Return what a detector finds, also behind the escapes of a JSON document."""
    matches = await detector.find(text, before)
    for inner, places in json_strings(text):
        for match in await detector.find(inner):
            if match.start < 0:
                matches.append(match)
            else:
                matches.append(Match(match.category, places[match.start], places[match.end], match.score))
    return matches


def _action(value: Any) -> GuardrailAction:
    try:
        return GuardrailAction(value.lower() if isinstance(value, str) else value)
    except ValueError:
        raise ConfigurationError(f"the action {value!r} is unknown; use 'block', 'redact' or 'warn'") from None


def _seams(**chosen: bool) -> frozenset[Seam]:
    return frozenset(seam for seam in SEAMS if chosen.get(seam, True))


def _as_detector(value: Any) -> Detector:
    if isinstance(value, Detector):
        return value
    raise ConfigurationError(f"detectors has {value!r}; give objects of a subclass of Detector")


def _check_thresholds(**values: Any) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
            raise ConfigurationError(f"{name} is {value!r}; give a number above 0, up to 1")


def _as_rule(rule: Any, number: int) -> Detector:
    if isinstance(rule, Detector):
        return rule
    if callable(rule):
        return Rule(getattr(rule, "__name__", f"rule_{number}"), rule)
    raise ConfigurationError(f"custom_rules has {rule!r}; give a Rule, or a function that takes the text")
