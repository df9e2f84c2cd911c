"""Plans as REST shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from api.problems import Problem
from api.reads.sessions import require_session
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import PlanRow
from ctxengine.ledger.queries.plans import PlanDetail, epochs, plan_detail
from ctxengine.service.plans import plan_view as service_view
from ctxengine.service.specs import PlanView
from ctxengine.service.wiring import plan_from


def plan_view(tenant_id: UUID, session_id: str, epoch: int, figures: Mapping[str, Any]) -> PlanView:
    """The plan of an epoch, as opening or rotating answered it with these figures of its cost.

    Raises:
        Problem: `not_found`.
    """
    session = UUID(session_id)
    view = _view(tenant_id, session, _detail(tenant_id, session, epoch))
    return replace(view, **figures)


def figures_of(plan: PlanView) -> dict[str, Any]:
    """What a rotation cost: told once, and kept with the answer because no row holds it."""
    return {"recached_tokens": plan.recached_tokens, "price_usd": plan.price_usd}


def plan_facts(tenant_id: UUID, session_id: UUID, epoch: int | None) -> dict[str, Any]:
    """One plan with its texts and tools; None means the current epoch. Three queries.

    Raises:
        Problem: `not_found`.
    """
    session = require_session(tenant_id, session_id)
    detail = _detail(tenant_id, session_id, session.epoch if epoch is None else epoch)
    view = _view(tenant_id, session_id, detail)
    return {
        **{name: getattr(view, name) for name in PlanView.__dataclass_fields__},
        "provider": detail.line.provider,
        "model": detail.line.model,
        "sequence": detail.line.sequence,
        "framing_version": detail.line.framing_version,
        "renderer": detail.line.renderer,
        "counter": detail.line.counter,
        "created_at": detail.line.created_at,
        "texts": list(detail.texts),
        "tools": list(detail.tools),
        "erased": detail.erased,
    }


def plan_lines(tenant_id: UUID, session_id: UUID) -> dict[str, Any]:
    """All epochs of a session, newest first. Two queries.

    Raises:
        Problem: `not_found`.
    """
    require_session(tenant_id, session_id)
    return {"items": list(epochs(tenant_id, session_id))}


def _detail(tenant_id: UUID, session_id: UUID, epoch: int) -> PlanDetail:
    found = plan_detail(tenant_id, session_id, epoch)
    if found is None:
        raise Problem("not_found", f"The session {session_id} has no epoch {epoch}.")
    return found


def _view(tenant_id: UUID, session_id: UUID, detail: PlanDetail) -> PlanView:
    row = PlanRow.objects.get(tenant_id=tenant_id, session_id=session_id, epoch=detail.line.epoch)
    try:
        plan = plan_from(PostgresLog(tenant_id, session_id), row)
    except LookupError:
        return _without_texts(row)
    return service_view(plan, tuple(row.reasons))


def _without_texts(row: PlanRow) -> PlanView:
    """A plan whose texts were erased: its hashes and counts stay."""
    return PlanView(
        epoch=row.epoch,
        prefix_sha256=row.prefix_sha256,
        wire_prefix_sha256=row.wire_prefix_sha256,
        prefix_tokens=row.prefix_tokens,
        tokens_by_class=row.tokens_by_class,
        tool_names=[],
        skipped_tool_names=[],
        warnings=list(row.warnings),
        reasons=list(row.reasons),
        policy=row.policy,
        builder_version=row.builder_version,
    )
