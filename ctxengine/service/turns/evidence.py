"""`GET evidence/{id}`: one stored result in every form a request can show, and any part of it (design 5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ctxengine.engine.control.recall import Recallable, RecallWish, Room, within
from ctxengine.engine.evidence.excerpt import WINDOWED_ENGINES
from ctxengine.engine.evidence.forms import EvidenceForms, forms_of
from ctxengine.engine.evidence.window import LineRange
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.items import Item, ItemKind
from ctxengine.engine.log.hydrate import ERASED_TEXT
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.turns.closed import digests_noted, events_of
from ctxengine.ledger.models import SessionRow
from ctxengine.ledger.queries.turns import turn_spans
from ctxengine.service.access import not_found, plan_row_of, session_of
from ctxengine.service.control.recall import recalled, room_of
from ctxengine.service.factor import factor_in_force
from ctxengine.service.raw_reads import masked_item, note_raw_read
from ctxengine.service.specs import Actor
from ctxengine.service.wiring import log_of, plan_from


@dataclass(frozen=True, slots=True)
class Evidence:
    """One stored result. Texts are as a model would see them, secrets masked; characters and lines are counted in them."""

    id: str
    """`session:sequence.ordinal`."""
    session: UUID
    item: str
    turn: int
    """Number of the turn it came in."""
    call: str
    """Item id of the call that it answers; empty where that is not known."""
    name: str
    """The tool's."""
    source: str
    trust: Trust
    """Of every form of it."""
    is_error: bool
    bytes: int
    characters: int
    lines: int
    tokens: int
    pointer_tokens: int
    digest_sha256: str
    """Of the item's canonical content."""
    recorded_at: datetime
    erased: bool
    shape: str
    """What it looks like; it decides what its digest shows."""
    window: str
    """What the open run shows of it under the policy in force, or the limit that it was counted with where that is less."""
    window_ends: bool
    """Whether that is more than is given here, so that `window` is its first and last whole lines."""
    limit: int | None
    """Up to here the open run shows it whole; None where it always does."""
    limit_unit: str
    """`characters`, or `bytes`, which is also how what is over it is cut."""
    digest: str
    """What its turn shows of it once it is closed."""
    pointer: str
    part: str
    """The part asked for by `lines` or `chars`; without either, what a recall without a range gives."""


@dataclass(frozen=True, slots=True)
class RecallTried:
    """What the model would get from one call of `recall` now."""

    text: str
    trust: Trust
    source: str
    is_error: bool


def evidence_of(
    *,
    actor: Actor,
    session_id: UUID,
    item: ItemId,
    lines: LineRange | None = None,
    chars: LineRange | None = None,
    raw: bool = False,
) -> Evidence:
    """A result in all its forms.

    Args:
        raw: leave secrets as they are. Only for those who may see them; it stands in the audit log.

    Raises:
        ServiceError: 404 where the session holds no result of that id.
    """
    session = session_of(actor, session_id)
    log = log_of(session)
    unit = log.unit_of_item(item.sequence)
    found = next((entry for entry in unit.items if entry.id == item), None) if unit else None
    if unit is None or found is None or found.kind is not ItemKind.TOOL_RESULT:
        raise not_found("evidence")
    (event,) = log.events(after=EventSeq(item.sequence - 1), limit=1)
    spans = turn_spans(session.tenant_id, session.id)
    turn = next((span.number for span in reversed(spans) if span.first <= unit.sequence), 0)
    call = next((i for i in unit.items if _is_call_of(i, found)), None)
    wish = RecallWish(Recallable.ID, str(item), lines, chars)
    # Masked before anything is cut: no range asked for may show a secret piece by piece.
    plan = plan_from(log, plan_row_of(session))
    inline = plan.policy.inline
    (closed,) = events_of(log, (turn,))
    forms = forms_of(
        found if raw else masked_item(found),
        inline=inline,
        whole_lines=session.engine in WINDOWED_ENGINES,
        digests=digests_noted(closed),
    )
    if raw:
        note_raw_read(actor=actor, session_id=session.id, what=f"evidence {item}")
    return _evidence(
        session.id,
        found,
        forms,
        limit_unit=inline.unit.value,
        part=within(_room(session, plan), forms.whole, wish),
        turn=turn,
        call=str(call.id) if call is not None else "",
        recorded_at=event.recorded_at,
    )


def try_recall(*, actor: Actor, session_id: UUID, arguments: str) -> RecallTried:
    """What a call of `recall` with these arguments would give now; nothing is recorded.

    Args:
        arguments: text of a JSON object.

    Raises:
        ServiceError: 404.
        LexemeError: the arguments are no JSON.
    """
    session = session_of(actor, session_id)
    log = log_of(session)
    room = _room(session, plan_from(log, plan_row_of(session)))
    answer = recalled(log, arguments, below=EventSeq(log.head().sequence + 1), room=room)
    return RecallTried(model_view(answer.text), answer.trust, answer.source, answer.is_error)


def _room(session: SessionRow, plan: Plan) -> Room:
    """What a run that starts now has for an answer."""
    return room_of(plan, factor_in_force(session.tenant_id, plan.provider, plan.model))


def _is_call_of(item: Item, result: Item) -> bool:
    return item.kind is ItemKind.TOOL_CALL and item.wire_call_id == result.wire_call_id


def _evidence(
    session: UUID,
    item: Item,
    forms: EvidenceForms,
    *,
    limit_unit: str,
    part: str,
    turn: int,
    call: str,
    recorded_at: datetime,
) -> Evidence:
    return Evidence(
        id=f"{session}:{item.id}",
        session=session,
        item=str(item.id),
        turn=turn,
        call=call,
        name=model_view(item.name or ""),
        source=item.source,
        trust=item.trust,
        is_error=item.is_error,
        bytes=item.bytes_len,
        characters=len(forms.whole),
        lines=forms.lines,
        tokens=item.tokens,
        pointer_tokens=item.pointer_tokens,
        digest_sha256=item.digest,
        recorded_at=recorded_at,
        erased=forms.whole == ERASED_TEXT,
        shape=forms.shape.value,
        window=model_view(forms.window),
        window_ends=forms.window_ends,
        limit=forms.limit,
        limit_unit=limit_unit,
        digest=model_view(forms.digest),
        pointer=model_view(forms.pointer),
        part=model_view(part),
    )
