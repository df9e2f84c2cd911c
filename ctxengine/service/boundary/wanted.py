"""What a job of this engine is asked to do: figures and digests, never content."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

KIND = "compaction.boundary"


class WantedCheckpoint(BaseModel):
    """A compaction that a request needs first, or that somebody asked for."""

    model_config = ConfigDict(frozen=True)

    cause: Literal["trigger", "hand"]
    prefix: str
    """Digest of source and contract it was asked for."""
    cut: int
    run: str | None = None
    keep_turns: int | None = None
    """Most recent turns that stay whole, where that was asked for by hand."""
    through: int | None = None
    """Last event that may be covered, where that was asked for by hand."""
    note: str = ""

    def as_arguments(self) -> dict[str, Any]:
        """Plain data for the job's row."""
        return self.model_dump(mode="json")


def flight_key(session: UUID | str) -> str:
    """One compaction of a session at once."""
    return f"boundary:{session}"
