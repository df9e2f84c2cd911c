"""Persona documents: reading them, and saving a revision over the one that was read (spec, The persona row)."""

from __future__ import annotations

import json
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from ctxengine.engine.budget.classes import RULE_OF, BudgetClass
from ctxengine.engine.errors import PlanOverflow
from ctxengine.engine.plan.persona import persona_text
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import PersonaRevision
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.plan_specs import EditPersona, PersonaView
from ctxengine.service.refusals import refusal_of
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.wiring import careful_counter


def newest_persona(tenant_id: UUID, principal: str) -> PersonaView:
    """The document as it stands; revision 0 with no entries where nothing was saved."""
    row = _revisions(tenant_id, principal).first()
    return _view(row) if row is not None else _nothing(principal)


def persona_revision(*, actor: Actor, principal: str, revision: int | None = None) -> PersonaView:
    """The newest revision of a document, or a named one.

    Raises:
        ServiceError: 404 when the named revision was never saved.
    """
    if revision is None:
        return newest_persona(actor.tenant_id, principal)
    row = _revisions(actor.tenant_id, principal).filter(revision=revision).first()
    if row is None:
        raise ServiceError("not_found", 404, f"There is no revision {revision} of this persona.")
    return _view(row)


def list_personas(*, actor: Actor) -> list[PersonaView]:
    """The newest revision of every document of the tenant, by principal."""
    rows = (
        PersonaRevision.objects.filter(tenant_id=actor.tenant_id)
        .order_by("principal", "-revision")
        .distinct("principal")
    )
    return [_view(row) for row in rows]


def edit_persona(*, actor: Actor, principal: str, spec: EditPersona) -> PersonaView:
    """Save the next revision. Sessions of the principal adopt it at their next run's start.

    Raises:
        ServiceError: `persona_stale` (409) when the document has moved on since it was read; `plan_overflow` (422) naming the
            persona class; `invalid_content` (422) for a principal without a name.
    """
    if not 1 <= len(principal) <= 200:
        raise ServiceError("invalid_content", 422, "A principal's id has 1 to 200 characters.")
    entries = tuple(model_view(entry) for entry in spec.entries)
    tokens = measured(entries)
    with transaction.atomic():
        before = newest_persona(actor.tenant_id, principal)
        if before.revision != spec.revision:
            raise _stale(before.revision, spec.revision)
        row = PersonaRevision(
            tenant_id=actor.tenant_id,
            principal=principal,
            revision=spec.revision + 1,
            entries=json.dumps(entries),
            tokens=tokens,
            note=model_view(spec.note),
            saved_by=actor.label,
            saved_at=utc_now(),
        )
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError as error:
            # Somebody else saved the same revision between the look and the write.
            raise _stale(spec.revision + 1, spec.revision) from error
        record_audit(
            actor=actor,
            action="persona.saved",
            target=principal,
            reason=row.note,
            before={"revision": before.revision, "entries": len(before.entries)},
            after={"revision": row.revision, "entries": len(entries), "tokens": tokens},
        )
    return _view(row)


def measured(entries: tuple[str, ...]) -> int:
    """Tokens of the row that these entries render to.

    Raises:
        ServiceError: `plan_overflow` (422) when they are over a cap of the persona class.
    """
    rule = RULE_OF[BudgetClass.PERSONA]
    text = persona_text(entries)
    tokens = careful_counter().text(text) if text else 0
    over_items = len(entries) > (rule.cap_items or 0)
    if over_items or tokens > (rule.cap_tokens or 0):
        found = len(entries) if over_items else tokens
        cap = (rule.cap_items if over_items else rule.cap_tokens) or 0
        hint = "These are entries, not tokens. Remove some." if over_items else "Shorten it."
        raise refusal_of(PlanOverflow(BudgetClass.PERSONA.value, found, cap, hint))
    return tokens


def _revisions(tenant_id: UUID, principal: str) -> QuerySet[PersonaRevision]:
    rows = PersonaRevision.objects.filter(tenant_id=tenant_id, principal=principal)
    return rows.order_by("-revision")


def _stale(found: int, seen: int) -> ServiceError:
    return ServiceError(
        "persona_stale",
        409,
        f"The persona is at revision {found}, not at {seen}; read it again and apply the change to that.",
        revision=found,
    )


def _nothing(principal: str) -> PersonaView:
    return PersonaView(principal, 0, [], 0, "", "", None)


def _view(row: PersonaRevision) -> PersonaView:
    return PersonaView(
        principal=row.principal,
        revision=row.revision,
        entries=list(json.loads(row.entries)),
        tokens=row.tokens,
        note=row.note,
        saved_by=row.saved_by,
        saved_at=row.saved_at,
    )
