"""`sessions/{session}/plan` and `plans`: the pinned prefix, one per epoch."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api.answers import json_response, to_json
from api.openapi import FLAG, TEXT, TIME, WHOLE, component_of, listed, record
from api.reads.plans import plan_facts, plan_lines
from api.schema import Component, Operation, Operations
from api.views import ReadView
from ctxengine.ledger.queries.plans import EpochLine, PlannedTool, PrefixText
from ctxengine.service.specs import PlanView

PLAN = component_of("Plan", PlanView)
EPOCH_LINE = component_of("EpochLine", EpochLine)
_TEXT = component_of("PrefixText", PrefixText)
_TOOL = component_of("PlannedTool", PlannedTool)
PLAN_DETAIL = Component(
    "PlanDetail",
    {
        "allOf": [
            PLAN.ref,
            record(
                {
                    "provider": TEXT,
                    "model": TEXT,
                    "sequence": WHOLE,
                    "framing_version": TEXT,
                    "renderer": TEXT,
                    "counter": TEXT,
                    "created_at": TIME,
                    "texts": listed(_TEXT.ref),
                    "tools": listed(_TOOL.ref),
                    "erased": FLAG,
                }
            ),
        ]
    },
    (PLAN, _TEXT, _TOOL),
)


class CurrentPlanView(ReadView):
    """The plan of the current epoch."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_current_plan",
            summary="Look at the current plan",
            tag="sessions",
            answer=PLAN_DETAIL,
            answer_note="The plan with its texts and tools.",
        )
    }

    def get(self, request: Request, session: UUID) -> HttpResponse:
        """The current plan."""
        self.query()
        return json_response(to_json(plan_facts(self.actor().tenant_id, session, None)))


class PlansView(ReadView):
    """All epochs of a session."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="list_plans",
            summary="List the epochs of a session, newest first",
            tag="sessions",
            answer=Component(
                "EpochLines", record({"items": listed(EPOCH_LINE.ref)}), (EPOCH_LINE,)
            ),
            answer_note="Every epoch.",
        )
    }

    def get(self, request: Request, session: UUID) -> HttpResponse:
        """Every epoch."""
        self.query()
        return json_response(to_json(plan_lines(self.actor().tenant_id, session)))


class EpochPlanView(ReadView):
    """The plan of one epoch."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_plan",
            summary="Look at the plan of an epoch",
            tag="sessions",
            answer=PLAN_DETAIL,
            answer_note="The plan with its texts and tools.",
        )
    }

    def get(self, request: Request, session: UUID, epoch: int) -> HttpResponse:
        """The plan of that epoch."""
        self.query()
        return json_response(to_json(plan_facts(self.actor().tenant_id, session, epoch)))
