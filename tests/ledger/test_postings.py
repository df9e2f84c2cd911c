"""The index in Postgres answers as the one in memory, keeps sessions apart, and takes a turn once (capacity spec 4)."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest

from ctxengine.engine.turns.postings import MemoryPostings, TurnTerms
from ctxengine.engine.turns.relevance import values_of
from ctxengine.engine.turns.terms import found_by
from ctxengine.ledger.postings import PostgresPostings, forget_turns, index_turn, indexed_numbers

pytestmark = pytest.mark.django_db

TEXTS = (
    "rename customer_id in orders.sql",
    "the login page flickers",
    "数据库迁移失败",
    "retries in fetchInvoice at billing.py, billing.py again",
)


def terms(number: int) -> TurnTerms:
    return TurnTerms(number, Counter(found_by(TEXTS[number - 1])))


def both() -> tuple[MemoryPostings, PostgresPostings, uuid.UUID, uuid.UUID]:
    tenant, session = uuid.uuid4(), uuid.uuid4()
    for number in range(1, len(TEXTS) + 1):
        index_turn(tenant, session, terms(number))
    return (
        MemoryPostings(terms(n) for n in range(1, len(TEXTS) + 1)),
        PostgresPostings(tenant, session),
        tenant,
        session,
    )


def test_both_indexes_give_the_same_values() -> None:
    memory, postgres, _, _ = both()
    assert (postgres.turns, postgres.mean_length) == (memory.turns, memory.mean_length)
    assert postgres.lengths([1, 3, 9]) == memory.lengths([1, 3, 9])
    for directive in ("customer_id", "billing.py retries", "数据库", "nothing known", ""):
        assert values_of(directive, newest=4, postings=postgres) == values_of(
            directive, newest=4, postings=memory
        )


def test_a_turn_is_taken_once() -> None:
    _, _, tenant, session = both()
    index_turn(tenant, session, TurnTerms(1, Counter({"other": 5})))
    postings = PostgresPostings(tenant, session)
    assert postings.turns == len(TEXTS)
    assert postings.holding(["other"]) == {}


def test_other_sessions_and_other_tenants_are_not_seen() -> None:
    _, _, tenant, session = both()
    assert PostgresPostings(tenant, uuid.uuid4()).turns == 0
    assert PostgresPostings(uuid.uuid4(), session).holding(["login"]) == {}


def test_a_forgotten_turn_is_gone() -> None:
    _, _, tenant, session = both()
    forget_turns(tenant, session, [2])
    assert indexed_numbers(tenant, session) == {1, 3, 4}
    assert PostgresPostings(tenant, session).holding(["login"]) == {}
