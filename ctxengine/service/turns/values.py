"""What each closed turn of a session is worth to a new directive: read once, at run start (capacity spec 4)."""

from __future__ import annotations

from collections.abc import Mapping

from ctxengine.engine.turns.relevance import Values, values_of
from ctxengine.engine.turns.similarity import likeness_of
from ctxengine.ledger.models import SessionRow
from ctxengine.ledger.postings import PostgresPostings, embeddings_of
from ctxengine.service.turns.embedder import configured_embedder, embedded


def values_for(
    session: SessionRow, directive: str, *, newest: int, oldest: int = 1
) -> dict[int, Values]:
    """Recency, relevance and anaphora of closed turns, the newest of which has this number.

    Turns before `oldest` are given where more than their age speaks for them.
    Call it outside any lock: an embedder, where one is configured, is asked here.
    """
    postings = PostgresPostings(session.tenant_id, session.id)
    return values_of(
        directive,
        newest=newest,
        postings=postings,
        like=_likeness(session, directive),
        oldest=oldest,
    )


def _likeness(session: SessionRow, directive: str) -> Mapping[int, float]:
    embedder = configured_embedder()
    if embedder is None or not directive.strip():
        return {}
    stored = embeddings_of(session.tenant_id, session.id, embedder.version)
    asked = embedded(embedder, [directive]) if stored else []
    return likeness_of(asked[0], stored) if asked else {}
