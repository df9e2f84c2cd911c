"""What the doors hand over about cards: what a tool's are known by, and what a user does with one."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ctxengine.service.spec_base import Spec


class CardSpec(Spec):
    """What the cards of a tool are known by; see `CardSchema` for the selectors."""

    version: int = Field(default=1, ge=1)
    identity: tuple[str, ...] = ()
    title: tuple[str, ...] = ()
    execute: bool = False
    """Whether the runtime carries the calls out itself."""


class GiveFeedback(Spec):
    """`POST sessions/{id}/presentations/{event}/feedback`."""

    verdict: Literal["helpful", "unhelpful", "wrong", "dismissed"]
    note: str = Field(default="", max_length=4000)


class SelectOnCard(Spec):
    """`POST sessions/{id}/presentations/{event}/selection`."""

    choice: str = Field(min_length=1, max_length=4000)
    """What was chosen, as the card names it."""
