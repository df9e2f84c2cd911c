"""The one refusal of this package."""

from __future__ import annotations

from ctxengine.engine.errors import EngineError


class NotATranscript(EngineError):
    """A file cannot be read as a transcript; `reason` says why in words for people, nothing was taken from it."""

    code = "not_a_transcript"

    def __init__(self, reason: str, **numbers: object) -> None:
        super().__init__(reason, **numbers)
        self.reason = reason
