"""`retention`: how long the tenant keeps what, how much is over that time, and changing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api.answers import json_response, to_json
from api.auth import OPERATE, READ, Scopes
from api.edits import PatchView
from api.openapi import TEXT, WHOLE, listed, record
from api.schema import Component, Operation, Operations
from api.shapes.containers import Member, Record
from api.shapes.scalars import Text, Whole
from api.views import Done, JsonWrite
from ctxengine.engine.lexeme import Node
from ctxengine.service.retention.apply import due
from ctxengine.service.retention.kinds import KINDS, MOST_DAYS
from ctxengine.service.retention.rules import keeping_times, set_keeping_times
from ctxengine.service.specs import Actor

_RULE = Component(
    "KeepingTime",
    record(
        {
            "kind": TEXT,
            "days": {**WHOLE, "description": "0: for ever."},
            "default_days": WHOLE,
            "least_days": WHOLE,
            "counts_from": TEXT,
            "goes": TEXT,
            "stays": TEXT,
            "due": {**WHOLE, "description": "How many would go now."},
        }
    ),
)
RETENTION = Component("Retention", record({"items": listed(_RULE.ref)}), (_RULE,))
CHANGE_RETENTION = Record(
    *(
        Member(kind.name, Whole(minimum=0, maximum=MOST_DAYS), note=f"{kind.title}: days; 0 for ever.")
        for kind in KINDS
    ),
    Member("note", Text(), required=True, note="Why; it stands in the audit log."),
)  # fmt: skip


class ChangeRetentionWrite(JsonWrite[dict[str, Any]]):
    """`PATCH retention`."""

    def parse(self, body: Node) -> dict[str, Any]:
        """Days by kind, and the note."""
        return dict(CHANGE_RETENTION.read(body, ""))

    def perform(self, actor: Actor, spec: dict[str, Any], ids: Mapping[str, Any]) -> Done:
        """Change what is named."""
        days = {name: value for name, value in spec.items() if name != "note"}
        set_keeping_times(actor=actor, days=days, note=spec["note"])
        return Done({}, _told(actor.tenant_id))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The times as they stand now."""
        return _told(actor.tenant_id)


class RetentionView(PatchView):
    """The tenant's keeping times."""

    scopes: ClassVar[Scopes] = {"GET": READ, "PATCH": OPERATE}
    write = ChangeRetentionWrite()
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_retention",
            summary="Read how long what is kept, and how much is over its time",
            tag="retention",
            answer=RETENTION,
            answer_note="Every kind that can be given a time.",
        ),
        "PATCH": Operation(
            id="change_retention",
            summary="Change how long what is kept; kinds that are not named stay as they are",
            tag="retention",
            answer=RETENTION,
            answer_note="The times as they stand. What is over its time goes with the next daily job.",
            body=CHANGE_RETENTION,
            problems=("reason_required",),
        ),
    }

    def get(self, request: Request) -> HttpResponse:
        """The times."""
        self.query()
        return json_response(_told(self.actor().tenant_id))


def _told(tenant_id: UUID) -> bytes:
    times, old = keeping_times(tenant_id), due(tenant_id)
    return to_json(
        {
            "items": [
                {
                    "kind": kind.name,
                    "days": times[kind.name],
                    "default_days": kind.default_days,
                    "least_days": kind.least_days,
                    "counts_from": kind.counts_from,
                    "goes": kind.goes,
                    "stays": kind.stays,
                    "due": old[kind.name],
                }
                for kind in KINDS
            ]
        }
    )
