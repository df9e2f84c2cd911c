"""`POST sessions/{id}/runs`: append the user's message and open the run it begins (design 5)."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F

from ctxengine.engine.derive import Derivation
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.access import session_of
from ctxengine.service.cache_behaviour import pinned_behaviour
from ctxengine.service.child_seed import message_drafts
from ctxengine.service.clock import local_time, utc_now
from ctxengine.service.factor import factor_in_force
from ctxengine.service.open_refusals import rotation_refusals_kept
from ctxengine.service.probe.job import step_aside
from ctxengine.service.races import redo_once
from ctxengine.service.readings import reading_drafts
from ctxengine.service.recount import counts_for, store_counts
from ctxengine.service.refusals import refusing
from ctxengine.service.rotation import Rotation, store_rotation
from ctxengine.service.run_start import rotation_for_run, run_scopes
from ctxengine.service.snapshots import fence
from ctxengine.service.specs import Actor, RunStarted, ServiceError, StartRun
from ctxengine.service.turns.close_turns import close_missing_turns
from ctxengine.service.warm import plan_of_session
from ctxengine.service.wiring import counter_of, log_of, new_id
from ctxengine.service.working_set.ask_packet import ask_ahead
from ctxengine.service.working_set.plan_run import start_drafts


def start_run(*, actor: Actor, session_id: UUID, spec: StartRun) -> RunStarted:
    """Open a run.

    Raises:
        ServiceError: `run_open` (409) while another run of the session is open; `session_ended` (409); `invalid_content`
            (422).
    """
    session = session_of(actor, session_id)
    if spec.timezone or spec.now:
        local_time(spec.now or utc_now(), spec.timezone or "")
    return redo_once(lambda: _start(actor, session, spec))


def _start(actor: Actor, session: SessionRow, spec: StartRun) -> RunStarted:
    now, run_id, log = utc_now(), new_id(), log_of(session)
    close_missing_turns(session, log)
    # The head comes first: what is read after it holds for an append at it.
    head = log.head()
    _refuse_second(session)
    granted = run_scopes(session, _viewed(spec.scopes))
    with rotation_refusals_kept(actor, session), refusing():
        turned = rotation_for_run(session, log, granted=granted)
    with refusing():
        counts = counts_for(session, log, turned.plan) if turned is not None else None
        sequence = EventSeq(head.sequence + (1 if turned is None else 2))
        number = session.runs + 1
        said = _message(log, session, spec, turned, str(run_id), number, sequence)
        refuse_empty(said[0].items, spec.message.format)
        drafts = [*said] if turned is None else [turned.draft(session), *said]
        drafts += start_drafts(
            session,
            log,
            said=said,
            boundary=sequence,
            next_sequence=head.sequence + len(drafts) + 1,
            run=str(run_id),
            turned=turned.plan if turned is not None else None,
            reading=spec.reading,
        )
        plan = turned.plan if turned is not None else plan_of_session(session, log)
        drafts += reading_drafts(session, plan, spec.reading, said[0], run=str(run_id))
        try:
            with transaction.atomic():
                if turned is not None and turned.plan.snapshot:
                    # Before the session's lock, as an erasure takes them.
                    fence(session.tenant_id, session.principal)
                batch = log.append(
                    drafts, expected=head.sequence, at=now, key=actor.idempotency_key
                )
                if turned is not None:
                    store_rotation(
                        actor=actor,
                        session=session,
                        turned=turned,
                        batch=batch,
                        sequence=EventSeq(sequence - 1),
                        at=now,
                    )
                    store_counts(session, counts, turned.plan.counter)
                _run_row(actor, session, spec, granted, run_id, number, sequence, now).save(
                    force_insert=True
                )
                SessionRow.objects.filter(tenant_id=actor.tenant_id, id=session.id).update(
                    runs=F("runs") + 1
                )
        except IntegrityError as error:
            raise _run_open() from error
    ask_ahead(session, log, plan)
    # A background probe of the model that this turn is about to use would compete with it.
    step_aside(actor.tenant_id, *_bound(session, turned))
    return RunStarted(run_id, number, sequence)


def _message(
    log: PostgresLog,
    session: SessionRow,
    spec: StartRun,
    turned: Rotation | None,
    run: str,
    number: int,
    sequence: EventSeq,
) -> list[EventDraft]:
    """The events of the user's message, counted for the model that the run will be bound to."""
    payload: dict[str, Any] = {"run_number": number}
    if spec.scopes is not None:
        payload["scopes"] = [model_view(scope) for scope in spec.scopes]
    if spec.timezone:
        payload["timezone"] = spec.timezone
    if spec.surface:
        payload["surface"] = model_view(spec.surface)
    return message_drafts(
        log,
        session,
        spec.message,
        type=EventType.USER_MESSAGE,
        sequence=sequence,
        derivation=Derivation(counter_of(*_bound(session, turned))),
        run=run,
        payload=payload,
    )


def _viewed(scopes: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if scopes is None else tuple(model_view(scope) for scope in scopes)


def _bound(session: SessionRow, turned: Rotation | None) -> tuple[str, str]:
    """Provider and model that the run will be bound to."""
    if turned is None:
        return session.provider, session.model
    return turned.plan.provider, turned.plan.model


def _refuse_second(session: SessionRow) -> None:
    session.refresh_from_db(fields=["state", "runs", "epoch", "provider", "model", "settings"])
    if session.state != "open":
        raise ServiceError("session_ended", 409, "The session has ended; open a new one.")
    rows = RunRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
    if rows.exclude(state="ended").exists():
        raise _run_open()


def _run_open() -> ServiceError:
    return ServiceError(
        "run_open",
        409,
        "A run of this session is still open; finish or end it before starting another.",
    )


def _run_row(
    actor: Actor,
    session: SessionRow,
    spec: StartRun,
    granted: tuple[str, ...] | None,
    run_id: UUID,
    number: int,
    sequence: EventSeq,
    now: datetime,
) -> RunRow:
    return RunRow(
        tenant_id=actor.tenant_id,
        id=run_id,
        session_id=session.id,
        number=number,
        seed_event_sequence=sequence,
        settings={
            "scopes": list(granted or ()),
            "authority_stated": granted is not None,
            "surface": model_view(spec.surface or ""),
            "timezone": spec.timezone or "",
            "now": spec.now.isoformat() if spec.now else None,
            "factor_millionths": factor_in_force(actor.tenant_id, session.provider, session.model),
            **pinned_behaviour(session, session.provider, session.model),
        },
        started_at=now,
    )


def refuse_empty(items: object, format: ContentFormat) -> None:
    """A message must say something: a run that begins with nothing cannot be answered.

    Raises:
        ServiceError: 422 `invalid_content`.
    """
    if not items:
        raise ServiceError(
            "invalid_content", 422, f"The message ({format.value}) holds no content."
        )
