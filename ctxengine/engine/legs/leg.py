"""A leg's figures, and the budget that the smallest of several models leaves (design 5 and 7.16).

Every count of a request is in the raw tokens of the session's own model. What a leg admits is turned into those by how much
more its own counter finds in the same text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.budget.arithmetic import Frame, frame
from ctxengine.engine.budget.policy import BudgetPolicy

MOST_LEGS = 4
ONE = 1_000_000
"""Millionths of one."""


class Leg(BaseModel):
    """One further model that may answer, with the figures it was chosen with; they hold for the run."""

    model_config = ConfigDict(frozen=True)

    provider: str
    model: str
    window: int
    max_output: int
    reserve: int
    """Tokens kept for its answer."""
    factor_millionths: int = ONE
    """Calibration factor of this model."""
    usable: int
    """What a request to it may take, in raw tokens of its own counter."""
    horizon: int = 0
    """Within so many of them it was seen to follow instructions; 0: nothing is known, or the engine does not ask."""
    prefix: int = 0
    """What region A takes by its own counter (raw tokens)."""
    own_prefix: int = 0
    """What it takes by the session's."""
    ratio_millionths: int = ONE
    """Raw tokens of its own counter for one of the session's, behind the prefix; never under one."""

    @property
    def admits(self) -> int:
        """What a request may take for its sake, in raw tokens of the session's counter."""
        return self._in_own(self.usable)

    @property
    def plans_for(self) -> int:
        """The same with its horizon: what closed history is planned for."""
        return self._in_own(min(self.usable, self.horizon) if self.horizon else self.usable)

    def _in_own(self, tokens: int) -> int:
        return self.own_prefix + (tokens - self.prefix) * ONE // self.ratio_millionths

    def after(self, own_tokens: int, leg_tokens: int) -> Leg:
        """The leg once the same text behind a prefix is known to take so many tokens for either counter.

        Its ratio only rises.
        """
        seen = math.ceil(leg_tokens * ONE / max(1, own_tokens))
        return self.model_copy(update={"ratio_millionths": max(self.ratio_millionths, seen)})


class LegBody(BaseModel):
    """What was built for a leg: enough to build it again, and to tell what of it is gone since."""

    model_config = ConfigDict(frozen=True)

    request_sha256: str
    wire_prefix_sha256: str
    tokens: int
    """Raw count by the leg's own counter."""
    body_bytes: int
    body_chars: int
    opaque: dict[str, str] = {}
    """As in the inputs of the request, under the leg's renderer; so are those that follow."""
    marked: dict[str, str] = {}
    fresh: str = ""
    summary: str = ""
    sent: dict[str, str] = {}
    """Digest of each fresh block of earlier steps that its event keeps another one for, by that event."""


def leg_frame(leg_window: int, max_output: int, policy: BudgetPolicy, factor: float) -> Frame:
    """What a model of this window admits, in raw tokens of its own counter; the prefix is still in it."""
    return frame(
        window=leg_window, max_output=max_output, prefix_tokens=0, policy=policy, factor=factor
    )


def smallest(own: Frame, legs: Sequence[Leg], policy: BudgetPolicy) -> Frame:
    """The budget of a request that every one of these models can take: the session's own, or that of the smallest leg.

    The prefix and what is kept for the session's own answer stay as they are.
    """
    least = min(legs, key=lambda leg: leg.admits, default=None)
    if least is None or least.admits >= own.usable:
        return own
    total = least.window if policy.policy_cap is None else min(least.window, policy.policy_cap)
    return _narrowed(
        replace(own, window=least.window, total=total), least.admits, policy.tool_results_share
    )


def sized_for(own: Frame, legs: Sequence[Leg]) -> str:
    """The leg whose budget `smallest` gives; empty where it is the session's own."""
    least = min(legs, key=lambda leg: leg.admits, default=None)
    if least is None or least.admits >= own.usable:
        return ""
    return f"{least.provider}/{least.model}"


def planned_within(own: Frame, legs: Sequence[Leg], policy: BudgetPolicy) -> Frame:
    """The same for closed history, which is kept within what each of the models was measured to use."""
    least = min((leg.plans_for for leg in legs), default=own.usable)
    return own if least >= own.usable else _narrowed(own, least, policy.tool_results_share)


def _narrowed(own: Frame, usable: int, share: float) -> Frame:
    body = usable - own.prefix
    return replace(
        own,
        usable=usable,
        body=body,
        margin=max(0, own.total - own.reserve - math.floor(usable * own.factor)),
        tool_results_cap=max(0, math.floor(body * share)),
    )
