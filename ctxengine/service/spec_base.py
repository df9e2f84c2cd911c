"""The base of everything a door hands to a use case."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Spec(BaseModel):
    """Base: unknown fields are refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)
