"""The embedder that an operator configured, if any: named by its dotted path, made once per process (capacity spec 4)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from ctxengine.engine.ports import Embedder
from ctxengine.engine.turns.similarity import MAX_TEXT_CHARS, pack

_log = logging.getLogger(__name__)


def configured_embedder() -> Embedder | None:
    """The embedder of `CTX_EMBEDDER`; None where none is named.

    Raises:
        ImproperlyConfigured: what is named cannot be imported or made, or is no embedder.
    """
    path: str = settings.CTX_EMBEDDER
    return _made(path) if path else None


@cache
def _made(path: str) -> Embedder:
    try:
        made = import_string(path)()
    except Exception as error:
        msg = f"CTX_EMBEDDER names {path!r}, which cannot be made: {error}"
        raise ImproperlyConfigured(msg) from error
    if not callable(getattr(made, "embed", None)) or not getattr(made, "version", ""):
        msg = f"CTX_EMBEDDER names {path!r}, which has no `version` or no `embed`."
        raise ImproperlyConfigured(msg)
    embedder: Embedder = made
    return embedder


def embedded(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """These texts as packed vectors. Call it outside any lock: it may take as long as a network does.

    An embedder that fails costs its part of relevance and nothing else: the failure is logged, and no vector is given.
    """
    try:
        vectors = embedder.embed([text[:MAX_TEXT_CHARS] for text in texts])
        packed = [pack(vector) for vector in vectors]
    except Exception:
        _log.exception(
            "The embedder %s failed; turns are found by their words alone.", embedder.version
        )
        return []
    if len(packed) != len(texts):
        _log.error(
            "The embedder %s gave %d vectors for %d texts.",
            embedder.version,
            len(packed),
            len(texts),
        )
        return []
    return packed
