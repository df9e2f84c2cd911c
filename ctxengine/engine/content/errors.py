"""The one error of this package."""

from __future__ import annotations

from ctxengine.engine.errors import EngineError


class ContentError(EngineError):
    """A body is not what its format says; the message names place, found and expected."""

    code = "content_invalid"
