"""A log that remembers gives what the ledger gives, whatever happened behind its back."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.utils import timezone

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Body, ItemRow, SessionRow
from ctxengine.ledger.warm import KnownUnits, WarmLog
from ctxengine.service.prove import replay_request
from tests.cast import AT, Call, Runtime, Scribe, postgres_log, sized

pytestmark = pytest.mark.django_db


class Watched:
    """One session's log, written by others, and what one process knows of it."""

    def __init__(self) -> None:
        self.log: PostgresLog = postgres_log()
        self.scribe = Scribe(self.log)
        self.known = KnownUnits()

    def warm(self) -> WarmLog:
        """The log for one step."""
        return WarmLog(self.log.tenant, self.log.session, self.known)

    def agree(self, first: int = 1) -> None:
        """Everything a step asks for is what the ledger says."""
        warm, head = self.warm(), self.log.head()
        assert warm.head() == head
        below = EventSeq(head.sequence + 1)
        for start in (first, max(first, head.sequence - 2)):
            cold = list(self.log.units(EventSeq(start), below))
            assert list(warm.units(EventSeq(start), below)) == cold
        for sequence in range(head.sequence + 2):
            assert warm.at(EventSeq(sequence)) == self.log.at(EventSeq(sequence))
        assert list(warm.newest_yields()) == list(self.log.newest_yields())


@pytest.fixture
def watched() -> Watched:
    watched = Watched()
    watched.scribe.user("5|one")
    watched.scribe.step(Call("a", "read"), Call("b", "read"))
    watched.scribe.result("b", sized(40))
    watched.agree()
    return watched


def test_appends_of_others_are_taken_in(watched: Watched) -> None:
    watched.scribe.result("a", sized(50))
    watched.scribe.answers("9|done")
    watched.scribe.user("7|two")
    watched.agree()
    watched.scribe.step(Call("c", "read"))
    watched.agree()
    watched.scribe.result("c", sized(20))
    watched.agree()


def test_what_lies_before_the_first_known_unit_is_read_when_it_is_asked_for(
    watched: Watched,
) -> None:
    watched.scribe.result("a", sized(50))
    for number in range(6):
        watched.scribe.user(f"{number + 1}|more")
    watched.known = KnownUnits()
    watched.agree(first=watched.log.head().sequence - 1)
    watched.scribe.user("9|again")
    watched.agree(first=4)
    watched.agree(first=1)


def test_erased_content_is_gone_at_once(watched: Watched) -> None:
    body = Body.objects.filter(session_id=watched.log.session).order_by("length").last()
    assert body is not None
    Body.objects.filter(session_id=watched.log.session, id=body.id).update(
        data=b"", salt=b"", erased_at=timezone.now()
    )
    watched.agree()


def test_what_was_seen_and_rolled_back_is_forgotten(watched: Watched) -> None:
    with transaction.atomic():
        watched.scribe.result("a", sized(50))
        watched.scribe.user("5|never said")
        watched.agree()
        transaction.set_rollback(True)
    other = Scribe(watched.log)
    other.user("6|said instead")
    other.user("6|and this")
    watched.agree()


def test_new_counts_are_taken_over(watched: Watched) -> None:
    ItemRow.objects.filter(session_id=watched.log.session).update(tokens=77)
    SessionRow.objects.filter(id=watched.log.session).update(counter="counter-1/other")
    watched.agree()


def test_a_yield_is_seen_by_the_next_step(watched: Watched) -> None:
    before = watched.warm().version()
    watched.scribe.user("5|plain talk")
    assert watched.warm().version() == before
    payload = {"class": "history", "floor_sequence": 2, "plan_total": 1000}
    draft = EventDraft(EventType.YIELD_APPLIED, Trust.PLATFORM, payload)
    watched.log.append([draft], expected=None, at=AT)
    assert watched.warm().version() != before
    watched.agree()


def test_requests_of_a_warm_process_prove_without_it() -> None:
    runtime = Runtime()
    for number in range(3):
        runtime.ask(f"Round {number}")
        runtime.assemble()
        runtime.say("", Call(f"t{number}", "read"))
        runtime.results((f"t{number}", "fine " * 50))
        built = runtime.assemble()
        assert replay_request(actor=runtime.actor, request_id=built.request_id).identical
        runtime.say("Done.")
