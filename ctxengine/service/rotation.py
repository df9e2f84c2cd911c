"""One rotation of a session's epoch: resolve it, say what it costs, store it with its event (spec, Prefix epochs)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ctxengine.engine.events import EventDraft
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import Batch
from ctxengine.engine.plan.epochs import RULE_OF_REASON, EpochReason
from ctxengine.engine.plan.plan import BUILDER_VERSION, Plan, neutral_prefix_sha256
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import SessionRow
from ctxengine.service.audit import record_audit
from ctxengine.service.factor import factor_in_force
from ctxengine.service.learnt_window import ASSUMED
from ctxengine.service.measure_plan import ask_to_measure
from ctxengine.service.plans import candidates_again, plan_draft, plan_row, plan_view
from ctxengine.service.prices import Price, recache_price
from ctxengine.service.snapshots import register_trace
from ctxengine.service.specs import Actor, PlanView
from ctxengine.service.wiring import counter_of, renderer_of, session_facts


@dataclass(frozen=True, slots=True)
class Rotation:
    """A plan that is about to follow another."""

    old: Plan
    plan: Plan
    reasons: tuple[str, ...]
    note: str
    facts: dict[str, Any]
    """Further payload fields of the event."""

    @property
    def recached_tokens(self) -> int:
        """What the provider has to cache anew: nothing where the bytes stay."""
        same = self.old.wire_prefix_sha256 == self.plan.wire_prefix_sha256
        model = (self.old.provider, self.old.model) == (self.plan.provider, self.plan.model)
        return 0 if same and model else self.plan.prefix_tokens

    @property
    def price(self) -> Price | None:
        """The price of that, where it is known."""
        return recache_price(self.plan.provider, self.plan.model, self.recached_tokens)

    def draft(self, session: SessionRow) -> EventDraft:
        """The event."""
        return plan_draft(
            self.plan,
            reasons=self.reasons,
            note=self.note,
            owner=session.principal,
            recached_tokens=self.recached_tokens,
            price=self.price,
            persona_revision=self.plan.persona_revision,
            **self.facts,
        )

    def view(self) -> PlanView:
        """The new plan as REST shows it."""
        return plan_view(
            self.plan, self.reasons, recached_tokens=self.recached_tokens, price=self.price
        )


def same_request(old: Plan) -> PlanRequest:
    """What the next epoch is resolved from when nothing but the epoch changes."""
    return PlanRequest(
        prefix_ttl=old.prefix_ttl,
        engine=old.engine,
        provider=old.provider,
        model=old.model,
        window=old.window,
        max_output=old.max_output,
        agent_name=old.agent_name,
        agent_version=old.agent_version,
        instructions=old.instructions,
        tools=candidates_again(old),
        persona=old.persona,
        persona_revision=old.persona_revision,
        skills=old.skills,
        snapshot=old.snapshot,
        snapshot_trace=old.snapshot_trace,
        snapshot_watermark=old.snapshot_watermark,
        authority=old.authority_scope_hashes,
        environment=old.environment,
        policy=old.policy,
        had_search=old.had_search or old.deferral == "native",
        epoch=old.epoch + 1,
        notes=tuple(warning for warning in old.warnings if warning.startswith(ASSUMED)),
    )


def resolved(session: SessionRow, old: Plan, wanted: PlanRequest) -> Plan:
    """Resolve a plan for a session.

    Raises:
        PlanOverflow: a class does not fit.
        RequiredToolMissing: a required tool cannot be defined.
    """
    factor = factor_in_force(session.tenant_id, wanted.provider, wanted.model)
    return resolve_plan(
        replace(wanted, factor=factor / 1_000_000),
        counter=counter_of(wanted.provider, wanted.model),
        renderer=renderer_of(wanted.provider),
        nonce_key=session_facts(session, old).nonce_key,
    )


def rotation(
    session: SessionRow,
    old: Plan,
    wanted: PlanRequest,
    reasons: Sequence[EpochReason],
    *,
    note: str = "",
    **facts: Any,
) -> Rotation:
    """Resolve what follows `old`; raises as `resolved` does."""
    plan = resolved(session, old, wanted)
    return Rotation(old, plan, tuple(r.value for r in reasons), model_view(note), facts)


def renamed(old: Plan) -> Rotation:
    """The same plan once more, under the hash that every process agrees on: nothing is rebuilt, no byte changes."""
    plan = old.model_copy(
        update={
            "epoch": old.epoch + 1,
            "builder": BUILDER_VERSION,
            "prefix_sha256": neutral_prefix_sha256(old),
        }
    )
    reason = EpochReason.PREFIX_HASH_CANONICALIZED
    return Rotation(old, plan, (reason.value,), RULE_OF_REASON[reason].meaning, {})


def store_rotation(
    *,
    actor: Actor,
    session: SessionRow,
    turned: Rotation,
    batch: Batch,
    sequence: EventSeq,
    at: datetime,
) -> None:
    """Write the rows of a rotation whose event was appended at `sequence`; call it in the transaction of the append."""
    plan = turned.plan
    plan_row(
        plan,
        tenant_id=session.tenant_id,
        session_id=session.id,
        sequence=sequence,
        batch=batch,
        reasons=turned.reasons,
        at=at,
    ).save(force_insert=True)
    changes: dict[str, Any] = {"epoch": plan.epoch}
    if (plan.provider, plan.model) != (session.provider, session.model):
        changes |= {"provider": plan.provider, "model": model_view(plan.model)}
    if plan.agent_version:
        changes |= {"agent_name": plan.agent_name, "agent_version": plan.agent_version}
    SessionRow.objects.filter(tenant_id=session.tenant_id, id=session.id).update(**changes)
    for name, value in changes.items():
        setattr(session, name, value)
    register_trace(session, plan, at=at)
    ask_to_measure(
        actor=actor,
        session_id=session.id,
        epoch=plan.epoch,
        provider=plan.provider,
        cause="epoch rotated: " + ", ".join(turned.reasons),
    )
    record_audit(
        actor=actor,
        action="epoch.rotated",
        target=str(session.id),
        reason=turned.note or ", ".join(turned.reasons),
        before={"epoch": turned.old.epoch, "prefix": turned.old.prefix_sha256},
        after={
            "epoch": plan.epoch,
            "prefix": plan.prefix_sha256,
            "reasons": list(turned.reasons),
            "recached_tokens": turned.recached_tokens,
            "price_usd": turned.price.usd if turned.price else None,
        },
    )
