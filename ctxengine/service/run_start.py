"""What a new run needs changed before it starts: every reason collected, one rotation (design 7.16; spec, Prefix epochs)."""

from __future__ import annotations

from dataclasses import replace

from ctxengine.engine.budget.policy import DEFAULT_POLICY
from ctxengine.engine.errors import PlanOverflow, RequiredToolMissing
from ctxengine.engine.plan.authority import newly_granted
from ctxengine.engine.plan.changes import BuilderStanding, builder_standing, reasons_for
from ctxengine.engine.plan.epochs import EpochReason
from ctxengine.engine.plan.plan import BUILDER_VERSION, Plan, wire_prefix_sha256
from ctxengine.engine.plan.planner import PlanRequest
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import plan_row_of
from ctxengine.service.configure_session import wanted_changes
from ctxengine.service.edit_persona import newest_persona
from ctxengine.service.rotation import Rotation, renamed, resolved, rotation, same_request
from ctxengine.service.snapshots import snapshot_is_live
from ctxengine.service.wiring import plan_from, renderer_of, session_facts


def rotation_for_run(
    session: SessionRow, log: PostgresLog, *, granted: tuple[str, ...] | None
) -> Rotation | None:
    """The rotation that must come before a new run; None when the pinned plan serves it as it is.

    Reads only: the caller appends it in front of the run's first message. An open run never sees this: retries, resumed
    approvals and late input keep the pins they have.

    Args:
        granted: scopes of the new run; None when nobody stated them.

    Raises:
        PlanOverflow: what is wanted now does not fit.
        RequiredToolMissing: a required tool cannot be defined any more.
    """
    row = plan_row_of(session)
    old = plan_from(log, row)
    wanted = _adopted(session, old, wanted_changes(log, session, old, since=row.sequence))
    if newly_granted(old.authority_scope_hashes, granted):
        wanted = replace(wanted, scopes=granted)
    reasons = list(reasons_for(old, wanted, granted=granted))
    continued = not old.policy.enforce_caps and bool(session.import_sha256)
    if continued:
        reasons = [EpochReason.IMPORT_CONTINUED, *_besides_import(reasons)]
        return rotation(session, old, wanted, reasons, note="continued live")
    if old.builder != BUILDER_VERSION:
        standing = _builder(session, old)
        if standing is BuilderStanding.CHANGED:
            reasons.append(EpochReason.BUILDER_CHANGED)
        elif standing is BuilderStanding.RENAMED and not reasons:
            return renamed(old)
    return rotation(session, old, wanted, reasons) if reasons else None


def _adopted(session: SessionRow, old: Plan, wanted: PlanRequest) -> PlanRequest:
    """The request with what lies outside the session: the default policy for imports, the persona document, a live snapshot."""
    if not old.policy.enforce_caps and session.import_sha256:
        wanted = replace(wanted, policy=DEFAULT_POLICY)
    if wanted.persona_revision is not None:
        document = newest_persona(session.tenant_id, session.principal)
        wanted = replace(
            wanted, persona=tuple(document.entries), persona_revision=document.revision
        )
    same_snapshot = (wanted.snapshot_trace, wanted.snapshot) == (old.snapshot_trace, old.snapshot)
    if same_snapshot and not snapshot_is_live(session, old):
        wanted = replace(wanted, snapshot=(), snapshot_trace="", snapshot_watermark=0)
    return wanted


def _besides_import(reasons: list[EpochReason]) -> list[EpochReason]:
    """An import's own policy gives way to the default one by definition: that is no reason of its own."""
    return [reason for reason in reasons if reason is not EpochReason.POLICY_CHANGED]


def _builder(session: SessionRow, old: Plan) -> BuilderStanding:
    """How a plan of an older builder stands. One that cannot be resolved again stays while it renders its bytes."""
    try:
        again = resolved(session, old, same_request(old))
    except (PlanOverflow, RequiredToolMissing):
        key = session_facts(session, old).nonce_key
        bytes_now = wire_prefix_sha256(old, key, renderer_of(old.provider))
        if bytes_now == old.wire_prefix_sha256:
            return BuilderStanding.CURRENT
        raise
    return builder_standing(old, again)


def run_scopes(session: SessionRow, given: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Scopes of a new run: its own where it states them, else the session's; None where nobody stated any."""
    if given is not None:
        return given
    if session.settings.get("authority_stated"):
        return tuple(session.settings.get("scopes", ()))
    return None
