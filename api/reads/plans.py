"""Plans as REST shows them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.problems import Problem
from api.reads.sessions import require_session
from ctxengine.ledger.models import PlanRow
from ctxengine.ledger.queries.plans import PlanDetail, epochs, plan_detail
from ctxengine.service.specs import PlanView


def plan_view(tenant_id: UUID, session_id: UUID | str, epoch: int) -> PlanView:
    """The plan of an epoch, as opening or rotating answered it. Three queries.

    Raises:
        Problem: `not_found`.
    """
    session = UUID(str(session_id))
    return _view(tenant_id, session, _detail(tenant_id, session, epoch))


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
    line = detail.line
    row = PlanRow.objects.values("tokens_by_class", "policy").get(
        tenant_id=tenant_id, session_id=session_id, epoch=line.epoch
    )
    return PlanView(
        epoch=line.epoch,
        prefix_sha256=line.prefix_sha256,
        wire_prefix_sha256=line.wire_prefix_sha256,
        prefix_tokens=line.prefix_tokens,
        tool_names=[tool.name for tool in detail.tools if tool.group == "defined"],
        skipped_tool_names=sorted(tool.name for tool in detail.tools if tool.group == "skipped"),
        warnings=list(line.warnings),
        reasons=list(line.reasons),
        builder_version=line.builder_version,
        **row,
    )
