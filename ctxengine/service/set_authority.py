"""`PUT sessions/{id}/authority`: what the session's principal may do from now on (spec, Authorization changes).

A reduction holds at once, also for the open run: calls are refused where they are made, and no byte of the prefix changes. A
grant never widens an open run; the next run's start makes a new plan of it. The one exception is a run that waits for this very
access and has done no model work: its pins are made anew, once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import transaction

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.plan.authority import newly_granted, scope_hashes
from ctxengine.engine.plan.epochs import EpochReason
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.service.access import plan_row_of, session_of, still_open_session
from ctxengine.service.audit import record_audit
from ctxengine.service.bound_reasoning import open_run
from ctxengine.service.checkpoints import drop_checkpoint
from ctxengine.service.clock import utc_now
from ctxengine.service.open_refusals import rotation_refusals_kept
from ctxengine.service.plan_specs import AuthorityView, SetAuthority
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.rotate_epoch import turn_now
from ctxengine.service.rotation import Rotation, rotation, same_request
from ctxengine.service.snapshots import fence
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.wiring import log_of, plan_from


def set_authority(*, actor: Actor, session_id: UUID, spec: SetAuthority) -> AuthorityView:
    """Replace the scopes granted to a session.

    Raises:
        ServiceError: `session_ended` (409); `access_not_awaited` (409) when the run named to be resolved is not one that can
        be.
    """
    session = session_of(actor, session_id)
    wanted = tuple(sorted({model_view(scope) for scope in spec.scopes}))
    with rotation_refusals_kept(actor, session):
        return redo_once(lambda: _set(actor, session, wanted, spec))


def _set(
    actor: Actor, session: SessionRow, wanted: tuple[str, ...], spec: SetAuthority
) -> AuthorityView:
    log = log_of(session)
    with refusing():
        head = log.head()
        still_open_session(session)
        run = open_run(session)
        before = set(session.settings.get("scopes", ()))
        granted = sorted(set(wanted) - before)
        reduced = sorted((before | _own_scopes(run)) - set(wanted))
        resolved = _awaiting(run, spec.resolves_run)
        turned = _new_pins(session, log, wanted) if resolved else None
        with transaction.atomic():
            if turned is not None:
                # New pins may carry the snapshot; the fence comes before the session's lock, as an erasure takes them.
                fence(session.tenant_id, session.principal)
            log.append(
                [_event(wanted, granted, reduced, spec)],
                expected=head.sequence,
                at=utc_now(),
                key=actor.idempotency_key,
            )
            _keep(session, run, wanted, resolved=resolved)
            if resolved and run is not None:
                drop_checkpoint(run)
            if turned is not None:
                turn_now(actor=actor, session=session, log=log, turned=turned, expected=None)
            record_audit(
                actor=actor,
                action="authority.changed",
                target=str(session.id),
                before={"scopes": sorted(before)},
                after={"scopes": list(wanted)},
            )
    return AuthorityView(granted, reduced, list(wanted), session.epoch)


def _own_scopes(run: RunRow | None) -> set[str]:
    """Scopes that the open run was given itself, which may be others than its session's."""
    if run is None or not run.settings.get("authority_stated"):
        return set()
    return set(run.settings.get("scopes", ()))


def _awaiting(run: RunRow | None, named: UUID | None) -> bool:
    """Whether the named run may get new pins: open, without any model work, and for the first time."""
    if named is None:
        return False
    worked = RequestRow.objects.filter(run_id=named, status="answered")
    if (
        run is None
        or run.id != named
        or run.settings.get("access_resolved")
        or worked.filter(tenant_id=run.tenant_id).exists()
    ):
        raise ServiceError(
            "access_not_awaited",
            409,
            "Only an open run that no model has answered yet can be resolved, and only once; start another run.",
        )
    return True


def _event(
    wanted: tuple[str, ...], granted: list[str], reduced: list[str], spec: SetAuthority
) -> EventDraft:
    payload: dict[str, Any] = {
        "granted": granted,
        "reduced": reduced,
        "scope_hashes": list(scope_hashes(wanted)),
    }
    if spec.resolves_run is not None:
        payload["resolves"] = str(spec.resolves_run)
    return EventDraft(type=EventType.AUTHORITY_CHANGED, trust=Trust.PLATFORM, payload=payload)


def _keep(
    session: SessionRow,
    run: RunRow | None,
    wanted: tuple[str, ...],
    *,
    resolved: bool,
) -> None:
    session.settings |= {"scopes": list(wanted), "authority_stated": True}
    SessionRow.objects.filter(tenant_id=session.tenant_id, id=session.id).update(
        settings=session.settings
    )
    if run is None:
        return
    if resolved:
        run.settings |= {
            "scopes": list(wanted),
            "authority_stated": True,
            "access_resolved": True,
            "opaque_tokens": 0,
        }
    elif not run.settings.get("authority_stated"):
        # Nobody had limited the run: from all that there is to what is granted now is a reduction.
        run.settings |= {"scopes": list(wanted), "authority_stated": True}
    else:
        # What is granted now bounds the run, whoever gave it its scopes; what is new in it never widens the run.
        left = [scope for scope in run.settings.get("scopes", ()) if scope in wanted]
        run.settings |= {"scopes": left}
    RunRow.objects.filter(tenant_id=run.tenant_id, id=run.id).update(settings=run.settings)


def _new_pins(session: SessionRow, log: PostgresLog, wanted: tuple[str, ...]) -> Rotation | None:
    """The plan that a waiting run gets with its access; None where the pinned one holds it already."""
    old = plan_from(log, plan_row_of(session))
    if not newly_granted(old.authority_scope_hashes, wanted):
        return None
    return rotation(
        session,
        old,
        replace(same_request(old), scopes=wanted),
        (EpochReason.RUN_AUTHORITY_CHANGED,),
        note="missing access was resolved",
    )
