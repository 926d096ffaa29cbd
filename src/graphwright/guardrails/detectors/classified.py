"""Kinds that a classifier knows, such as toxicity: the package has none of its own, so one has to be given."""

from __future__ import annotations

from collections.abc import Iterable

from graphwright.guardrails.base import SEAMS, Classifier, Seam
from graphwright.guardrails.detectors.base import Detector, Match
from graphwright.guardrails.report import GuardrailAction

__all__ = ["ClassifierDetector"]


class ClassifierDetector(Detector):
    """Finds what a classifier rates at the threshold or above, under any of the labels."""

    def __init__(
        self,
        name: str,
        classifier: Classifier | None,
        action: GuardrailAction | str = GuardrailAction.WARN,
        *,
        threshold: float = 0.7,
        labels: Iterable[str] | None = None,
        seams: Iterable[Seam] = SEAMS,
    ) -> None:
        """With no `labels` every label counts but those that say there is nothing: `none`, `safe`, `neutral`."""
        self.name = name
        self.action = GuardrailAction(action)
        self.seams = frozenset(seams)
        self._classifier, self._threshold = classifier, threshold
        self._labels = None if labels is None else {label.lower() for label in labels}

    @property
    def is_ready(self) -> bool:
        """Whether there is a classifier."""
        return self._classifier is not None

    async def find(self, text: str, before: str = "") -> list[Match]:
        """Return the labels that the text gets."""
        assert self._classifier is not None
        scores = await self._classifier.classify(text)
        return [
            Match(label.lower(), score=score)
            for label, score in scores.items()
            if score >= self._threshold and self._counts(label.lower())
        ]

    async def warmup(self) -> None:
        """Load the classifier."""
        load = getattr(self._classifier, "warmup", None)
        if load is not None:
            await load()

    def _counts(self, label: str) -> bool:
        return label not in _NOTHING if self._labels is None else label in self._labels


_NOTHING = frozenset(("none", "safe", "neutral", "benign", "non-toxic", "not_toxic"))
