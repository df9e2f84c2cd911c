"""The index over a session's closed turns in Postgres; passes the same tests as the one in memory (capacity spec 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Avg, Count

from ctxengine.engine.turns.postings import TurnTerms
from ctxengine.ledger.inserts import insert, send
from ctxengine.ledger.models import IndexedTurn, Posting


class PostgresPostings:
    """Implements `engine.turns.relevance.Postings`. A view of one moment: make a new one for another directive."""

    def __init__(self, tenant: UUID | str, session: UUID | str) -> None:
        """Name the session; nothing is read yet."""
        self._key = {"tenant_id": str(tenant), "session_id": str(session)}

    @cached_property
    def _sums(self) -> tuple[int, float]:
        found = IndexedTurn.objects.filter(**self._key).aggregate(
            turns=Count("number"), mean=Avg("length")
        )
        return found["turns"], float(found["mean"] or 0.0)

    @property
    def turns(self) -> int:
        """Closed turns indexed."""
        return self._sums[0]

    @property
    def mean_length(self) -> float:
        """Terms of an average turn."""
        return self._sums[1]

    def holding(self, terms: Sequence[str]) -> Mapping[str, Mapping[int, int]]:
        """For each known term: turn number to how often that turn holds it."""
        rows = Posting.objects.filter(**self._key, term__in=list(terms))
        held: dict[str, dict[int, int]] = {}
        for term, number, count in rows.values_list("term", "number", "count"):
            held.setdefault(term, {})[number] = count
        return {term: held[term] for term in terms if term in held}

    def lengths(self, turns: Sequence[int]) -> Mapping[int, int]:
        """Terms of each of these turns."""
        rows = IndexedTurn.objects.filter(**self._key, number__in=list(turns))
        return dict(rows.values_list("number", "length"))


def indexed_numbers(tenant: UUID | str, session: UUID | str) -> frozenset[int]:
    """Numbers of the turns that the index holds."""
    rows = IndexedTurn.objects.filter(tenant_id=tenant, session_id=session)
    return frozenset(rows.values_list("number", flat=True))


def embeddings_of(tenant: UUID | str, session: UUID | str, embedder: str) -> dict[int, bytes]:
    """Packed vectors by turn number, of one embedder's version."""
    rows = IndexedTurn.objects.filter(tenant_id=tenant, session_id=session, embedder=embedder)
    return {number: bytes(data) for number, data in rows.values_list("number", "embedding")}


def index_turn(tenant: UUID | str, session: UUID | str, turn: TurnTerms) -> None:
    """Add one turn; one that is there already stays as it is."""
    key = {"tenant_id": UUID(str(tenant)), "session_id": UUID(str(session))}
    row = IndexedTurn(
        **key,
        number=turn.number,
        length=turn.length,
        embedding=turn.embedding,
        embedder=turn.embedder,
    )
    postings = [
        Posting(**key, term=term, number=turn.number, count=count)
        for term, count in turn.counts.items()
    ]
    statement = insert([row], unless_there=True)
    with transaction.atomic(), connection.cursor() as cursor:
        if statement is not None:
            cursor.execute(statement.sql, statement.values)
        if cursor.rowcount:
            send([insert(postings)])


def forget_turns(tenant: UUID | str, session: UUID | str, numbers: Sequence[int]) -> None:
    """Take these turns out of the index."""
    key = {"tenant_id": tenant, "session_id": session, "number__in": list(numbers)}
    Posting.objects.filter(**key).delete()
    IndexedTurn.objects.filter(**key).delete()
