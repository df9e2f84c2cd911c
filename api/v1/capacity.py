"""`capacity-profiles`: what was measured of each model, and the probe that measures it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.http import HttpResponse
from rest_framework.request import Request

from api.answers import array, joined, json_response, to_json
from api.auth import OPERATE, READ, Scopes
from api.later import later_json
from api.openapi import TEXT, TIME, UUID_TEXT, component_of, listed, nullable, record
from api.schema import Component, Operation, Operations
from api.shapes.containers import Member, Record, build
from api.shapes.scalars import Flag, Identifier, Number, Text, Whole
from api.v1.assemble import LATER
from api.views import Done, JsonWrite, WriteView
from ctxengine.engine.capacity.profile import CapacityProfile
from ctxengine.engine.lexeme import Node
from ctxengine.ledger.models import Job
from ctxengine.service.probe.job import start_probe
from ctxengine.service.probe.profiles import newest_rows
from ctxengine.service.probe.run_probe import ProbeWanted
from ctxengine.service.specs import Actor

_PROFILE = component_of("CapacityProfile", CapacityProfile)
PROFILES = Component(
    "CapacityProfiles",
    record(
        {
            "items": listed(
                record(
                    {
                        "id": UUID_TEXT,
                        "source": TEXT,
                        "created_at": TIME,
                        "job": nullable(UUID_TEXT),
                        "profile": _PROFILE.ref,
                    }
                )
            )
        }
    ),
    (_PROFILE,),
)
PROBE = Record(
    Member("provider", Text(minLength=1, maxLength=48), required=True),
    Member("model", Text(minLength=1, maxLength=200), required=True),
    Member("session_id", Identifier(), note="Probe behind this session's prefix."),
    Member(
        "largest", Whole(minimum=500, maximum=4_000_000), note="Highest prompt to try (tokens)."
    ),
    Member("time_box_s", Number(), note="Seconds after which the ladder ends; 600 when left out."),
    Member("hosted", Flag(), note="Agree to what probing a hosted model costs."),
    Member(
        "exact",
        Flag(),
        note="Ask this very model, not the cheapest of its hosted family in its place.",
    ),
    spec=ProbeWanted,
)


class ProbeWrite(JsonWrite[ProbeWanted]):
    """`POST capacity-profiles`."""

    def parse(self, body: Node) -> ProbeWanted:
        """What to probe."""
        return build(ProbeWanted, PROBE.read(body, ""))

    def perform(self, actor: Actor, spec: ProbeWanted, ids: Mapping[str, Any]) -> Done:
        """Ask for the probe."""
        job = start_probe(actor=actor, wanted=spec, cause="REST")
        return Done({"job": str(job.id)}, to_json(later_json(job)), 202)

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The job as it stands now."""
        job = Job.objects.get(tenant_id=actor.tenant_id, id=resource["job"])
        return to_json(later_json(job))


class CapacityView(WriteView):
    """The capacity profiles of a tenant."""

    scopes: ClassVar[Scopes] = {"GET": READ, "POST": OPERATE}
    write = ProbeWrite()
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="list_capacity_profiles",
            summary="List the newest capacity profile of each measured model",
            tag="models",
            answer=PROFILES,
            answer_note="Models that were never measured are not listed: their declared window counts, with low confidence.",
        ),
        "POST": Operation(
            id="probe_model",
            summary="Measure how much of its window a model can use",
            tag="models",
            body=PROBE,
            status=202,
            answer=LATER,
            answer_note="The job, or the unfinished one of the same model.",
            problems=("unsupported_provider", "probe_not_allowed", "not_found"),
        ),
    }

    def get(self, request: Request) -> HttpResponse:
        """The list."""
        actor = self.actor()
        self.query()
        rows = [
            to_json(
                {
                    "id": row.id,
                    "source": row.source,
                    "created_at": row.created_at,
                    "job": row.job_id,
                    "profile": row.profile,
                }
            )
            for row in newest_rows(actor.tenant_id)
        ]
        return json_response(joined({"items": array(rows)}))
