"""The reading of a run's directive: the runtime's own, else a lexical one; recorded where a plan rests on it (design 7.11)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.items import ItemKind
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.reading import Reading, read_directive
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.turns.turn import Turn
from ctxengine.ledger.models import SessionRow
from ctxengine.service.run_facts import served_by
from ctxengine.service.specs import ReadingSpec

RUNTIME_VERSION = "runtime@1"


def reading_drafts(
    session: SessionRow,
    plan: Plan,
    given: ReadingSpec | None,
    said: EventDraft,
    *,
    run: str,
) -> list[EventDraft]:
    """The event with a run's reading; none where nobody sent one and nothing of the plan rests on one.

    Args:
        said: the message that opens the run.
    """
    if given is None and not plan.guarded:
        return []
    reading = _given(given) if given is not None else _lexical(plan, said)
    own = reading.source == "lexical"
    return [
        EventDraft(
            type=EventType.READING_TAKEN,
            trust=said.trust if own else Trust.USER,
            run=run,
            payload={
                "source": reading.source,
                "version": reading.version,
                # Words that a runtime chose may be the user's; they stay in the body, which erasure reaches.
                "act": reading.act if own else "",
                "domains": list(reading.domains) if own else [],
                "live": reading.live,
                "uncertain": reading.uncertain,
            },
            body=reading.model_dump_json(),
            owner=session.principal,
        )
    ]


def readings_of(log: SessionLog, turns: Sequence[Turn]) -> dict[int, Reading]:
    """The readings recorded for these consecutive turns, by number; those that were erased are missing."""
    runs = {str(turn.units[0].items[0].run): turn.number for turn in turns}
    taken = log.latest({EventType.READING_TAKEN}, after=turns[0].first) if turns else ()
    found = {
        runs[event.run]: event.body.id
        for event in reversed(taken)
        if event.run in runs and event.body is not None
    }
    texts = log.texts(found.values()) if found else {}
    return {
        number: Reading.model_validate_json(text)
        for number, body in found.items()
        if (text := texts.get(body)) is not None
    }


def _lexical(plan: Plan, said: EventDraft) -> Reading:
    texts = [text_of_item(item) for item in said.decoded if item.kind is ItemKind.USER_MESSAGE]
    return read_directive(model_view("\n".join(texts)), served=served_by(plan))


def _given(spec: ReadingSpec) -> Reading:
    return Reading(
        act=model_view(spec.act),
        domains=tuple(sorted({model_view(name) for name in spec.domains})),
        entities=tuple(model_view(name) for name in spec.entities),
        live=spec.live_data,
        uncertain=spec.uncertain,
        source="runtime",
        version=RUNTIME_VERSION,
    )
