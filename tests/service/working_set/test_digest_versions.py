"""A closed turn keeps the digests it was closed with: its record never changes, and what was sent is proven (design 4)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.evidence.digest import CURRENT_DIGESTS, FIRST_DIGESTS
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.turns import closing, record
from ctxengine.ledger.models import ItemRow
from ctxengine.service.erase import erase_person
from ctxengine.service.pin import set_presentation
from ctxengine.service.specs import Present, PrincipalSpec
from ctxengine.service.turns.evidence import evidence_of
from tests.cast import Runtime
from tests.service.working_set.test_loop import body, opened, verdicts

pytestmark = pytest.mark.django_db

PROSE = "The survey found more ferns on the shaded side of every valley than anyone had expected. "
PAGE = PROSE * 80
BEFORE, NOW = "the line goes on for", "the paragraph goes on for"


def turn(runtime: Runtime, call: str) -> None:
    runtime.ask(f"What does page {call} say?")
    runtime.look(call, PAGE)
    runtime.assemble()
    runtime.say("It speaks of ferns.")


def lived_before(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """A session with one turn that was closed before its event named the digests."""

    def without_version(*, payload: dict[str, Any], **fields: Any) -> EventDraft:
        del payload["digests"]
        return EventDraft(payload=payload, **fields)

    runtime = opened(9_000, principal=PrincipalSpec(id="mara"))
    with monkeypatch.context() as before:
        for module in (closing, record):
            before.setattr(module, "CURRENT_DIGESTS", FIRST_DIGESTS)
        before.setattr(closing, "EventDraft", without_version)
        turn(runtime, "one")
        runtime.turn("And now?", "Nothing new came in since you asked.")
    return runtime


def test_old_turns_keep_theirs_and_new_ones_get_the_current(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = lived_before(monkeypatch)
    old = body(runtime)
    assert BEFORE in old and NOW not in old
    turn(runtime, "two")
    runtime.ask("And now?")
    runtime.assemble()
    sent = body(runtime)
    assert (sent.count(BEFORE), sent.count(NOW)) == (1, 1)
    told = [event.payload.get("digests") for event in runtime.events(EventType.TURN_CLOSED)]
    assert told == [None, None, CURRENT_DIGESTS]
    runtime.say("Nothing.")
    assert verdicts(runtime) == {"identical"}
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert verdicts(runtime) <= {"identical", "identical_except"}


def test_evidence_shows_the_digest_of_the_turn_it_belongs_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = lived_before(monkeypatch)
    turn(runtime, "two")
    rows = ItemRow.objects.filter(session_id=runtime.session, kind="tool_result")
    digests = [
        evidence_of(
            actor=runtime.actor,
            session_id=runtime.session,
            item=ItemId(EventSeq(row.sequence), row.ordinal),
        ).digest
        for row in rows.order_by("sequence")
    ]
    assert [BEFORE in digests[0], NOW in digests[1]] == [True, True]


def test_a_turn_brought_back_by_hand_has_the_digests_of_its_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = lived_before(monkeypatch)
    for number in range(6):
        runtime.turn(f"Question {number}?", f"Answer {number} is a quite ordinary one. " * 60)
    (closed, *_) = runtime.events(EventType.TURN_CLOSED)
    spec = Present(target=f"{closed.payload['first']}.0", form="pinned", scope="turn")
    set_presentation(actor=runtime.actor, session_id=runtime.session, spec=spec)
    runtime.turn("And now?", "As before, nothing to add to that.")
    sent = body(runtime)
    assert BEFORE in sent and NOW not in sent
    assert verdicts(runtime) == {"identical"}
