"""Plans of a session: epochs, the pinned texts and the tool roster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ctxengine.engine.plan.plan import PinnedTool, Plan, plan_of
from ctxengine.ledger.models import Body, PlanRow
from ctxengine.ledger.queries.items import body_text


@dataclass(frozen=True, slots=True)
class ClassTokens:
    """What one prefix class takes of its cap."""

    name: str
    tokens: int
    cap: int | None
    items: int
    item_cap: int | None
    source: str
    """`counted`, `estimated` or `measured`."""


@dataclass(frozen=True, slots=True)
class EpochLine:
    """One epoch."""

    epoch: int
    sequence: int
    reasons: tuple[str, ...]
    provider: str
    model: str
    prefix_sha256: str
    wire_prefix_sha256: str
    prefix_tokens: int
    builder_version: str
    framing_version: str
    renderer: str
    counter: str
    warnings: tuple[str, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PlannedTool:
    """One tool of the roster."""

    name: str
    wire_name: str
    description: str
    schema: str
    """JSON text as pinned."""
    group: str
    """`defined`, `deferred`, `skipped` or `hidden`."""
    reason: str
    tokens: int
    synthesised: bool
    required_scopes: tuple[str, ...]
    side_effect: str
    result_trust: str
    server: str


@dataclass(frozen=True, slots=True)
class PrefixText:
    """One row of region A as text."""

    row: int
    text: str
    tokens: int | None
    """None for an empty row."""


@dataclass(frozen=True, slots=True)
class PlanDetail:
    """One epoch with what it pinned."""

    line: EpochLine
    classes: tuple[ClassTokens, ...]
    policy: dict[str, Any]
    texts: tuple[PrefixText, ...]
    tools: tuple[PlannedTool, ...]
    erased: bool
    """Whether the pinned texts are gone."""


def epochs(tenant_id: UUID, session_id: UUID) -> tuple[EpochLine, ...]:
    """All epochs of a session, newest first. One query."""
    rows = PlanRow.objects.filter(tenant_id=tenant_id, session_id=session_id).order_by("-epoch")
    return tuple(_line(row) for row in rows)


def plan_detail(tenant_id: UUID, session_id: UUID, epoch: int) -> PlanDetail | None:
    """One epoch with its pinned texts, or None. Two queries."""
    row = PlanRow.objects.filter(tenant_id=tenant_id, session_id=session_id, epoch=epoch).first()
    if row is None:
        return None
    body = Body.objects.filter(tenant_id=tenant_id, session_id=session_id, id=row.body_id).first()
    erased = body is None or body.erased_at is not None
    pinned = None if body is None or erased else plan_of(body_text(body))
    return PlanDetail(
        line=_line(row),
        classes=tuple(
            ClassTokens(
                name,
                figures["tokens"],
                figures["cap_tokens"],
                figures["items"],
                figures["cap_items"],
                figures["source"],
            )
            for name, figures in row.tokens_by_class.items()
        ),
        policy=row.policy,
        texts=_texts(pinned) if pinned else (),
        tools=tuple(_tool(tool) for tool in pinned.tools) if pinned else (),
        erased=erased,
    )


def _texts(plan: Plan) -> tuple[PrefixText, ...]:
    by_row = {
        1: plan.policy_text,
        2: plan.framing,
        3: plan.instructions,
        4: "\n".join(plan.persona),
        6: "",
        7: "",
        8: "\n".join(plan.snapshot),
    }
    counts = {int(row): tokens for row, (tokens, _) in plan.row_counts.items()}
    return tuple(PrefixText(row, text, counts.get(row)) for row, text in by_row.items())


def _tool(tool: PinnedTool) -> PlannedTool:
    return PlannedTool(
        name=tool.name,
        wire_name=tool.wire_name,
        description=tool.description,
        schema=tool.input_schema,
        group=tool.group,
        reason=tool.reason,
        tokens=tool.tokens,
        synthesised=tool.synthesised,
        required_scopes=tool.required_scopes,
        side_effect=tool.side_effect,
        result_trust=tool.result_trust.value,
        server=tool.server,
    )


def _line(row: PlanRow) -> EpochLine:
    return EpochLine(
        epoch=row.epoch,
        sequence=row.sequence,
        reasons=tuple(row.reasons),
        provider=row.provider,
        model=row.model,
        prefix_sha256=row.prefix_sha256,
        wire_prefix_sha256=row.wire_prefix_sha256,
        prefix_tokens=row.prefix_tokens,
        builder_version=row.builder_version,
        framing_version=row.framing_version,
        renderer=row.renderer,
        counter=row.counter,
        warnings=tuple(row.warnings),
        created_at=row.created_at,
    )
