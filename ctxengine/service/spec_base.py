"""The base of everything a door hands to a use case."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from ctxengine.engine.trust.model_view import model_view

LONGEST_CALL_ID = 1_000
"""Characters of the longest id under which a call's result can be reported."""


class Spec(BaseModel):
    """Base: unknown fields are refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _viewed(value: Any) -> Any:
    return model_view(value) if isinstance(value, str) else value


ViewedText = Annotated[str, BeforeValidator(_viewed)]
"""A text of any characters, as a model is shown it: halves of surrogate pairs, which nothing carries, are replaced."""
