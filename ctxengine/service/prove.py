"""Replay: rebuild recorded requests from the ledger and hold their hashes against the recorded ones (design 4)."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from django.db.models import QuerySet

from ctxengine.engine.build import BuildOptions
from ctxengine.engine.errors import EngineError
from ctxengine.engine.plan.plan import BUILDER_VERSION, SAME_BYTES
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RequestRow, SessionRow
from ctxengine.ledger.warm import KnownUnits, WarmLog
from ctxengine.service.access import request_of, session_of
from ctxengine.service.imports.complete import completed_with_the_next
from ctxengine.service.legs.leg_bodies import rebuild_legs
from ctxengine.service.rebuild import rebuild_request
from ctxengine.service.specs import Actor, Replay

_PROVE = BuildOptions(validate=False, with_body=False)
_PROVE_AND_VALIDATE = BuildOptions(validate=True, with_body=False)
"""For requests of this builder: its rules are those that the request was built under."""


def replay_request(*, actor: Actor, request_id: UUID) -> Replay:
    """Rebuild one request and compare.

    Raises:
        ServiceError: 404.
    """
    row = request_of(actor, request_id)
    return replay_row(session_of(actor, row.session_id), row)


def replay_row(session: SessionRow, row: RequestRow, log: PostgresLog | None = None) -> Replay:
    """Rebuild the request of a row and compare; every failure to rebuild is a difference with its reason.

    A request that an import only outlined is rebuilt and written first, and then proven by a second build of its own. Other
    bytes than an older builder recorded are no damage: what is stored is held against its hashes by `verify_ledger`.

    Args:
        log: see `rebuild_request`.
    """
    try:
        row = completed_with_the_next(row)
        if row.inputs.get("builder") not in SAME_BYTES:
            return _replay(row, "retired_builder", [], row.request_sha256)
        current = row.inputs["builder"] == BUILDER_VERSION and not row.reconstructed
        # Older requests were built before the rule that a result of a provider's tool stands behind its call.
        current = current and "lone_results" in row.inputs
        options = _PROVE_AND_VALIDATE if current else _PROVE
        built = rebuild_request(session, row, options=options, log=log)
        legs = rebuild_legs(session, row, options=options, log=log)
    except (EngineError, LookupError) as error:
        return _replay(row, "different", [], "", str(error))
    except ValueError as error:
        # Its words may quote what is stored, which no output repeats.
        why = f"what is stored can no longer be read ({type(error).__name__})"
        return _replay(row, "different", [], "", why)
    if built.request_sha256 != row.request_sha256:
        return _differing(row, list(built.absent), built.request_sha256, "hashes differ")
    absent = sorted({*built.absent, *(why for leg in legs for why in leg.request.absent)})
    for place, leg in enumerate(legs):
        if leg.request.request_sha256 != leg.body.request_sha256:
            why = f"leg {place} ({leg.leg.provider}/{leg.leg.model}): hashes differ"
            return _differing(row, absent, built.request_sha256, why)
    verdict = "identical_except" if absent else "identical"
    return _replay(row, verdict, absent, built.request_sha256)


def _differing(row: RequestRow, absent: list[str], rebuilt: str, why: str) -> Replay:
    older = row.inputs["builder"] != BUILDER_VERSION
    return _replay(row, "retired_builder" if older else "different", absent, rebuilt, why)


def _replay(
    row: RequestRow, verdict: str, absent: list[str], rebuilt: str, why: str | None = None
) -> Replay:
    return Replay(
        request_id=row.id,
        verdict=verdict,
        except_=absent,
        recorded_sha256=row.request_sha256,
        rebuilt_sha256=rebuilt,
        first_difference=why,
    )


def prove_all(
    *, session_id: UUID | None = None, request_id: UUID | None = None
) -> Iterator[Replay]:
    """Replay every recorded request, or those of one session, or one; for the command line, across tenants.

    Each request is built anew from its inputs; what its neighbours share with it is read from the ledger once a session.
    """
    session: SessionRow | None = None
    known = KnownUnits()
    for row in _wanted(session_id, request_id).iterator(chunk_size=200):
        if session is None or session.id != row.session_id:
            session = SessionRow.objects.get(tenant_id=row.tenant_id, id=row.session_id)
            known = KnownUnits()
        yield replay_row(session, row, WarmLog(row.tenant_id, row.session_id, known))


def count_requests(*, session_id: UUID | None = None, request_id: UUID | None = None) -> int:
    """How many requests `prove_all` replays."""
    return _wanted(session_id, request_id).count()


def _wanted(session_id: UUID | None, request_id: UUID | None) -> QuerySet[RequestRow]:
    rows = RequestRow.objects.order_by("tenant_id", "session_id", "number")
    if session_id is not None:
        rows = rows.filter(session_id=session_id)
    if request_id is not None:
        rows = rows.filter(id=request_id)
    return rows
