"""The calibration factor of a model: how real prompts compare with our raw counts (design 7.4).

It divides budgets and never touches stored counts. A value per model; a session reads it when a run
starts, so what a run teaches applies from the next one (design 7.16).

It starts conservative without being more than 1: where the tokenizer is not known, raw counts carry
the class priors of `families`, which lie above the mean measured for each class, and the policy's
margin comes on top. What makes that hold is the other direction: receipts that say counts are too
high are believed only once there are `ENOUGH_SAMPLES` of them, while one that says they are too low
counts at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from ctxengine.engine.tokens.usage import Usage

EWMA_WEIGHT = Fraction(3, 10)
"""Share of the newest ratio in the moving mean."""

LOWEST_FACTOR, HIGHEST_FACTOR = Fraction(1, 2), Fraction(4)
"""A single odd receipt may not move the factor beyond these."""

ENOUGH_SAMPLES = 5
"""Receipts before a factor below 1 is used: so few may all be of one kind of content."""

MIN_CALIBRATION_TOKENS = 200
"""A smaller prompt is mostly framing and teaches nothing about content."""

LARGEST_ERROR = Fraction(10)
"""An estimate ten times the prompt is as wrong as one can be said to be; a report of one token would give millions."""

_PLACES = 1_000_000


@dataclass(frozen=True, slots=True)
class CalibrationFactor:
    """Moving mean of actual divided by estimated, with how often and how well it was met."""

    model: str
    millionths: int = _PLACES
    """The factor times a million: a whole number, so that it is stored and compared exactly."""
    samples: int = 0
    last_error_millionths: int = 0
    """Signed error of the newest estimate, factor applied: positive when it was too low; at least -`LARGEST_ERROR`."""

    @property
    def in_force(self) -> int:
        """The factor (millionths) that a new run divides its budget by."""
        return self.millionths if self.samples >= ENOUGH_SAMPLES else max(_PLACES, self.millionths)

    @property
    def value(self) -> float:
        """The factor, 1.0 meaning that counts were right."""
        return self.millionths / _PLACES

    @property
    def signed_error(self) -> float:
        """(actual - expected) / actual of the newest receipt; positive means undercounted."""
        return self.last_error_millionths / _PLACES

    def tokens_within(self, budget: int) -> int:
        """How many raw counted tokens fit a budget of real ones, rounded down."""
        return budget * _PLACES // self.millionths

    def expected(self, raw: int) -> int:
        """Real tokens expected for a raw count, rounded up."""
        return -(-raw * self.millionths // _PLACES)

    def reconcile(self, estimated: int, usage: Usage) -> CalibrationFactor:
        """The factor after one receipt; unchanged where the receipt teaches nothing.

        Args:
            estimated: raw count of the request that was sent, prefix included.
            usage: its receipt. All prompt tokens count as actual, cache tiers included.
        """
        if not usage.calibrates or estimated < MIN_CALIBRATION_TOKENS:
            return self
        actual = usage.prompt_total
        ratio = min(max(Fraction(actual, estimated), LOWEST_FACTOR), HIGHEST_FACTOR)
        before = Fraction(self.millionths, _PLACES)
        after = before + EWMA_WEIGHT * (ratio - before)
        error = max(Fraction(actual - self.expected(estimated), actual), -LARGEST_ERROR)
        if self.samples == 0:
            # Counts that were too low are believed at once; that they were too high must be shown again and again.
            after = max(after, ratio)
        return CalibrationFactor(
            model=self.model,
            millionths=_rounded(after),
            samples=self.samples + 1,
            last_error_millionths=_rounded(error),
        )

    def raised_to(self, estimated: int, actual: int) -> CalibrationFactor:
        """The factor after a provider refused a request as too long (design 7.10); it only rises.

        Args:
            estimated: raw count of the refused request.
            actual: tokens the provider says it had, or the least that must be assumed.
        """
        if actual <= 0 or estimated <= 0:
            return self
        learnt = _rounded(min(Fraction(actual, estimated), HIGHEST_FACTOR))
        return replace(self, millionths=max(self.millionths, learnt))


def _rounded(value: Fraction) -> int:
    return int(value * _PLACES // 1)
