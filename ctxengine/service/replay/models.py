"""Which provider speaks for a model that is named alone, and a clear refusal where that is open."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxengine.engine.wire.registry import PROVIDER_API
from ctxengine.service.specs import ServiceError

_BY_NAME: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^claude-"), "anthropic"),
    (re.compile(r"^(gpt-|o\d(-|$)|chatgpt-)"), "openai"),
    (re.compile(r"^gemini-"), "google"),
)
"""Names that only one vendor gives."""


class LabModel(NamedTuple):
    """A model of the lab."""

    provider: str
    name: str

    def __str__(self) -> str:
        """As it is written on a command line."""
        return f"{self.provider}/{self.name}"


def lab_model(text: str) -> LabModel:
    """Read `NAME` or `PROVIDER/NAME`.

    Raises:
        ServiceError: 422 `unknown_model` where no provider is named and the name does not tell.
    """
    given = text.strip()
    provider, slash, name = given.partition("/")
    if slash and provider in PROVIDER_API and name:
        return LabModel(provider, name)
    for pattern, vendor in _BY_NAME:
        if pattern.search(given):
            return LabModel(vendor, given)
    known = ", ".join(sorted(PROVIDER_API))
    raise ServiceError(
        "unknown_model",
        422,
        f"{given or 'An empty name'} does not say whose model it is; write PROVIDER/NAME with one of {known}.",
    )
