"""The counter the rest of the engine asks: one model family behind the `TokenCounter` port."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.items import Part
from ctxengine.engine.tokens.estimator import (
    COUNTER_VERSION,
    estimate_call,
    estimate_message,
    estimate_tool,
)
from ctxengine.engine.tokens.families import Family, family_of
from ctxengine.engine.tokens.text import count_text


class FamilyCounter:
    """Counts for one model family; see `ports.TokenCounter`."""

    def __init__(self, family: Family) -> None:
        """Bind the family."""
        self.family = family
        self.label = f"{COUNTER_VERSION}/{family.name}"
        self.exact = family.exact
        self.tools_once = family.tools_once

    def text(self, text: str) -> int:
        """Tokens of a text, rounded up."""
        return count_text(text, self.family)

    def parts(self, parts: Sequence[Part]) -> int:
        """Tokens of a message's content, framing included."""
        return estimate_message(parts, self.family)

    def call(self, name: str, arguments: str) -> int:
        """Tokens of a tool call, framing included."""
        return estimate_call(name, arguments, self.family)

    def tool(self, name: str, description: str, schema: str) -> int:
        """Tokens of a tool definition, framing included."""
        return estimate_tool(name, description, schema, self.family)


def counter_for(provider: str, model: str) -> FamilyCounter:
    """The counter of a model's family; an unknown model gets the conservative one."""
    return FamilyCounter(family_of(provider, model))
