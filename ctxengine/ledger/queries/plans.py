"""Plans of a session: epochs, the pinned texts and the tool roster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.plan.deferred_index import index_entry
from ctxengine.engine.plan.plan import PinnedSkill, PinnedTool, Plan, plan_of
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
class PlannedSkill:
    """One skill of the catalog."""

    name: str
    description: str
    trust: str
    body_tokens: int
    sequence: int
    """Event that holds its body."""


@dataclass(frozen=True, slots=True)
class PrefixText:
    """One row of region A as text."""

    row: int
    text: str
    tokens: int | None
    """None for an empty row."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A prefix as its provider counts it."""

    tokens: int
    difference: int
    """How many tokens more than were pinned; negative for fewer."""
    model: str
    at: datetime


@dataclass(frozen=True, slots=True)
class PlanDetail:
    """One epoch with what it pinned."""

    line: EpochLine
    classes: tuple[ClassTokens, ...]
    policy: dict[str, Any]
    texts: tuple[PrefixText, ...]
    tools: tuple[PlannedTool, ...]
    erased: bool
    """Whether pinned texts are gone: all of them, or those of a person who was erased."""
    skills: tuple[PlannedSkill, ...] = ()
    persona_revision: int | None = None
    """Revision of the principal's document; None when the entries came with the session."""
    deferral: str = "index"
    """How deferred tools are reached: `index` or `native`."""
    measured: Measured | None = None
    """What the provider's counting endpoint said of the whole prefix; None where it was not asked, or counts nothing."""


def epochs(tenant_id: UUID, session_id: UUID) -> tuple[EpochLine, ...]:
    """All epochs of a session, newest first. One query."""
    rows = PlanRow.objects.filter(tenant_id=tenant_id, session_id=session_id).order_by("-epoch")
    return tuple(_line(row) for row in rows)


def newest_epochs(tenant_id: UUID, session_id: UUID, *, size: int) -> tuple[EpochLine, ...]:
    """The newest epochs of a session, that many at most, newest first. One query."""
    rows = PlanRow.objects.filter(tenant_id=tenant_id, session_id=session_id).order_by("-epoch")
    return tuple(_line(row) for row in rows[:size])


def inline_unit(tenant_id: UUID, session_id: UUID, epoch: int) -> str:
    """The unit of the limit of one result under an epoch's policy: `bytes` or `characters`. One query."""
    rows = PlanRow.objects.filter(tenant_id=tenant_id, session_id=session_id, epoch=epoch)
    return BudgetPolicy.model_validate(
        rows.values_list("policy", flat=True).get()
    ).inline.unit.value


def plan_detail(tenant_id: UUID, session_id: UUID, epoch: int) -> PlanDetail | None:
    """One epoch with its pinned texts, or None. Two queries."""
    row = PlanRow.objects.filter(tenant_id=tenant_id, session_id=session_id, epoch=epoch).first()
    if row is None:
        return None
    pinned, erased = stored_plan(row)
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
        texts=prefix_texts(pinned) if pinned else (),
        tools=planned_tools(pinned) if pinned else (),
        erased=erased,
        skills=planned_skills(pinned) if pinned else (),
        persona_revision=pinned.persona_revision if pinned else None,
        deferral=pinned.deferral if pinned else "index",
        measured=_measured(row),
    )


def _measured(row: PlanRow) -> Measured | None:
    told = row.measured
    if not told:
        return None
    return Measured(
        tokens=told["tokens"],
        difference=told["tokens"] - row.prefix_tokens,
        model=told["model"],
        at=datetime.fromisoformat(told["at"]),
    )


def stored_plan(row: PlanRow) -> tuple[Plan | None, bool]:
    """The plan as its body holds it, and whether texts of it were erased; one or two queries."""
    body = _body(row, row.body_id)
    erased = body is None or body.erased_at is not None
    if erased and row.redacted_body_id is not None:
        body = _body(row, row.redacted_body_id)
    gone = body is None or body.erased_at is not None
    return (None if gone or body is None else plan_of(body_text(body))), erased


def _body(row: PlanRow, body_id: UUID) -> Body | None:
    return Body.objects.filter(
        tenant_id=row.tenant_id, session_id=row.session_id, id=body_id
    ).first()


def prefix_texts(plan: Plan) -> tuple[PrefixText, ...]:
    """Rows of region A but the tool definitions, as text."""
    by_row = {
        1: plan.policy_text,
        2: plan.framing,
        3: plan.instructions,
        4: "\n".join(plan.persona),
        6: "\n".join(index_entry(tool) for tool in plan.indexed),
        7: "\n".join(f"- {skill.name}: {skill.description}" for skill in plan.skills),
        8: "\n".join(plan.snapshot),
    }
    counts = {int(row): tokens for row, (tokens, _) in plan.row_counts.items()}
    return tuple(PrefixText(row, text, counts.get(row)) for row, text in by_row.items())


def planned_tools(plan: Plan) -> tuple[PlannedTool, ...]:
    """The roster."""
    return tuple(_tool(tool) for tool in plan.tools)


def planned_skills(plan: Plan) -> tuple[PlannedSkill, ...]:
    """The catalog."""
    return tuple(_skill(skill) for skill in plan.skills)


def _skill(skill: PinnedSkill) -> PlannedSkill:
    return PlannedSkill(
        name=skill.name,
        description=skill.description,
        trust=skill.trust.value,
        body_tokens=skill.body_tokens,
        sequence=skill.sequence,
    )


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
