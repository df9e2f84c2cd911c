"""What a parent run tells its child: an instruction to obey, written by a model (design 2, 7.6 and 7.15; decision 0009).

The child's user is its parent, whose words a model wrote. They stand in the user's role, so that they are obeyed, and are
recorded as MODEL, so that nothing takes them for the user's. What they repeat of the parent's evidence is taken out of them
and follows as a message of its own, under the evidence's trust and in an envelope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ctxengine.engine.compaction.parrot import Run, Said, Untrusted, repeated_runs, replace_runs
from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.content.voices import refuse_other_voices
from ctxengine.engine.derive import Derivation, text_of_item
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import PARENT_SOURCE, ContentFormat
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.trust.levels import Trust, lowest
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.drafts import content_draft
from ctxengine.service.specs import Content

MAX_QUOTES = 16
"""Quoted sources that one instruction may have; one with more is data as a whole."""


class Quote(NamedTuple):
    """What an instruction repeats of one piece of evidence."""

    source: Untrusted
    text: str


class Words(NamedTuple):
    """A message of a session's user role as it will be kept."""

    content: Content
    trust: Trust
    source: str
    quotes: tuple[Quote, ...] = ()


def works_for_a_run(session: SessionRow) -> bool:
    """Whether a run stands in the user's place: what it says is never the user's own word."""
    return session.parent_run_id is not None or session.occasion == "child"


def message_drafts(
    log: SessionLog,
    session: SessionRow,
    content: Content,
    *,
    type: EventType,
    sequence: EventSeq,
    derivation: Derivation,
    run: str,
    payload: Mapping[str, Any],
) -> list[EventDraft]:
    """The events of one message in the user's role, the first at `sequence`: the message, then what it quotes.

    Raises:
        ContentError: the message is not written in its format, or holds a call or a result.
    """
    words = words_of(session, content)
    said = [(type, words.content, words.trust, words.source, payload)]
    said += [
        (EventType.INPUT_RECEIVED, Content(raw=q.text), q.source.trust, _cited(q.source), {})
        for q in words.quotes
    ]
    drafts = [
        content_draft(
            log,
            type=kind,
            format=told.format,
            raw=told.raw,
            trust=trust,
            sequence=EventSeq(sequence + place),
            derivation=derivation,
            run=run,
            source=source,
            payload=fields,
            owner=session.principal,
        )
        for place, (kind, told, trust, source, fields) in enumerate(said)
    ]
    refuse_other_voices((item.kind for item in drafts[0].items), "message")
    return drafts


def words_of(session: SessionRow, content: Content) -> Words:
    """Who speaks in a session's user role, and how far that may be believed.

    Raises:
        ContentError: the message is not written in its format.
    """
    if not works_for_a_run(session):
        return Words(content, Trust.USER, "user")
    text = _text(content)
    runs = _repeated(session, text)
    if not runs:
        return Words(content, Trust.MODEL, PARENT_SOURCE)
    sources = list(dict.fromkeys(run.source.item for run in runs))
    if content.format is not ContentFormat.TEXT or len(sources) > MAX_QUOTES:
        # Blocks are kept as received, so the quotation cannot be taken out of them: all of it is data.
        return Words(content, lowest(run.source.trust for run in runs), PARENT_SOURCE)
    quotes = [
        Quote(
            next(run.source for run in runs if run.source.item == item),
            "\n[...]\n".join(text[r.start : r.end] for r in runs if r.source.item == item),
        )
        for item in sources
    ]
    numbers = {item: number for number, item in enumerate(sources, start=1)}

    def marker(source: Untrusted) -> str:
        return f"[quoted {numbers[source.item]}: repeats {source.kind} {source.item} of the parent run; it follows as data]"

    left = Content(raw=replace_runs(text, runs, marker))
    return Words(left, Trust.MODEL, PARENT_SOURCE, tuple(quotes))


def _text(content: Content) -> str:
    if content.format is ContentFormat.TEXT:
        return content.raw
    decoded = decode_event(EventType.USER_MESSAGE, content.format, content.raw)
    return "\n".join(text_of_item(item) for item in decoded)


def _repeated(session: SessionRow, text: str) -> Sequence[Run]:
    """What a message repeats of everything untrusted that its parent run has seen."""
    if session.parent_run_id is None:
        return ()
    runs_of_tenant = RunRow.objects.filter(tenant_id=session.tenant_id)
    parent = runs_of_tenant.filter(id=session.parent_run_id).first()
    if parent is None:
        return ()
    log = PostgresLog(parent.tenant_id, parent.session_id)
    below = EventSeq(log.head().sequence + 1)
    ground = SessionTexts(log, below)
    (runs,) = repeated_runs([Said(below, text)], ground.untrusted(below), ground.brought)
    return runs


def _cited(source: Untrusted) -> str:
    return model_view(f"{PARENT_SOURCE}:{source.kind}:{source.item}")
