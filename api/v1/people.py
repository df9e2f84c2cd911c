"""`people/{principal}/erase`: a person's content leaves every session (design 4, 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from api.answers import to_json
from api.auth import OPERATE, Scopes
from api.later import later_json
from api.openapi import component_of
from api.reads.jobs import require_job
from api.schema import Operation, Operations
from api.v1.assemble import LATER
from api.v1.tool_acts import NOTE
from api.views import Done, JsonWrite, WriteView
from ctxengine.engine.lexeme import Node
from ctxengine.engine.trust.model_view import model_view
from ctxengine.service.erase import erase_person
from ctxengine.service.erase_job import erase_later, is_large
from ctxengine.service.plan_specs import PersonErased
from ctxengine.service.specs import Actor

ERASED = component_of("PersonErased", PersonErased)


class ErasePersonWrite(JsonWrite[str]):
    """`POST people/{principal}/erase`."""

    repeatable = True
    # Each session has a transaction of its own; an erasure that broke off goes on, and its figures are those of the whole.

    def parse(self, body: Node) -> str:
        """The note."""
        note: str = NOTE.read(body, "")["note"]
        return note

    def perform(self, actor: Actor, spec: str, ids: Mapping[str, Any]) -> Done:
        """Erase, or let a job do it where there is much to erase."""
        principal = model_view(ids["principal"])
        if is_large(actor=actor, principal=principal):
            job = erase_later(actor=actor, principal=principal, note=spec)
            return Done({"job": str(job.id)}, to_json(later_json(job)), 202)
        done = erase_person(actor=actor, principal=principal, note=spec)
        resource = {name: getattr(done, name) for name in PersonErased.__dataclass_fields__}
        return Done(resource, to_json(done))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The same figures, or the same job as it stands."""
        if "job" in resource:
            return to_json(later_json(require_job(actor.tenant_id, UUID(resource["job"]))))
        return to_json(PersonErased(**resource))


class ErasePersonView(WriteView):
    """Erasing a person."""

    scopes: ClassVar[Scopes] = {"POST": OPERATE}
    write = ErasePersonWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="erase_person",
            summary="Erase a principal's content from every session",
            tag="people",
            answer=ERASED,
            answer_note="What was erased. Hashes and recorded requests can still be proven.",
            body=NOTE,
            other_answers={202: (LATER, "The person is in many sessions: a job erases them.")},
            problems=("reason_required", "not_found"),
        )
    }
