"""`sessions/{session}/compactions`: shrink history, look at what stands for it, take it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api.answers import json_response, stored_json, to_json
from api.auth import OPERATE, READ, Scopes
from api.edits import EITHER
from api.later import later_json
from api.openapi import (
    FLAG,
    FREE,
    TEXT,
    TIME,
    UUID_TEXT,
    WHOLE,
    component_of,
    listed,
    nullable,
    record,
)
from api.reads.compactions import compaction_list
from api.reads.jobs import require_job
from api.schema import Component, Operation, Operations
from api.shapes.containers import Member, Record, build
from api.shapes.scalars import Flag, Text, Whole
from api.v1.assemble import LATER
from api.views import Done, JsonWrite, WriteView
from ctxengine.engine.compaction.net_cost import NetCost
from ctxengine.engine.lexeme import Node
from ctxengine.service.compact import compact
from ctxengine.service.compacted import Compacted
from ctxengine.service.specs import Actor, Compact, UndoCompaction
from ctxengine.service.undo_compaction import undo_compaction

_VERDICT = component_of("NetCost", NetCost)
WRITER = record(
    {
        "model": TEXT,
        "chosen": TEXT,
        "prompt": TEXT,
        "window": WHOLE,
        "session_window": WHOLE,
        "fragments": WHOLE,
        "job": UUID_TEXT,
        "calls": WHOLE,
        "prompt_tokens": WHOLE,
        "output_tokens": WHOLE,
        "cost_microdollars": nullable(WHOLE),
    }
)
"""Who wrote a summary, where a model did, and what that cost."""
COMPACTED = Component(
    "Compacted",
    record(
        {
            "outcome": {
                "type": "string",
                "enum": ["compacted", "merged", "unchanged", "skipped", "previewed"],
            },
            "event": nullable(WHOLE),
            "tokens_before": WHOLE,
            "tokens_after": nullable(WHOLE),
            "replaced_through": WHOLE,
            "depth": WHOLE,
            "verdict": nullable(_VERDICT.schema),
            "reason": TEXT,
            "reasoning_dropped": WHOLE,
        }
    ),
)
COMPACTION = Component(
    "Compaction",
    record(
        {
            "event": WHOLE,
            "at": TIME,
            "state": {
                "type": "string",
                "enum": ["standing", "merged", "superseded", "reserve", "held_out", "undone"],
            },
            "kind": TEXT,
            "first": WHOLE,
            "through": WHOLE,
            "depth": WHOLE,
            "merges": listed(WHOLE),
            "turns": WHOLE,
            "units": WHOLE,
            "tokens_before": WHOLE,
            "tokens_after": WHOLE,
            "plan_total": WHOLE,
            "reason": TEXT,
            "forced_by": TEXT,
            "compactor": TEXT,
            "detector": TEXT,
            "masked": WHOLE,
            "source_sha256": TEXT,
            "verdict": nullable(_VERDICT.schema),
            "writer": nullable(WRITER),
            "summary": nullable(TEXT),
            "constraints": listed(TEXT),
            "sources": WHOLE,
            "pointers": WHOLE,
            "grown_from": nullable(WHOLE),
            "source_event_ids": listed(WHOLE),
            "elided": listed(FREE),
            "erased": FLAG,
            "undo_first": nullable(WHOLE),
        }
    ),
)
COMPACTIONS = Component(
    "Compactions",
    record(
        {
            "items": listed(COMPACTION.ref),
            "coverage": listed(
                record(
                    {"first": WHOLE, "through": WHOLE, "told_by": TEXT, "event": nullable(WHOLE)}
                )
            ),
            "refusals": listed(FREE),
            "checkpoints": listed(FREE),
            "operations": listed(FREE),
        }
    ),
    (COMPACTION,),
)
UNDONE = Component("CompactionUndone", record({"event": WHOLE}))
COMPACT = Record(
    Member(
        "through", Whole(), note="Last event to be replaced; left out: down to the low-water mark."
    ),
    Member("merge", Flag(), note="Merge the summaries there are."),
    Member("force", Flag(), note="False: only where it pays."),
    Member("preview", Flag(), note="Say what it would do and cost, and change nothing."),
    Member("summariser", Text(), note="`model`: a job lets a model write it; the answer is 202."),
    Member("note", Text()),
    spec=Compact,
)
UNDO = Record(Member("note", Text()), spec=UndoCompaction)


class CompactWrite(JsonWrite[Compact]):
    """`POST sessions/{session}/compactions`."""

    def parse(self, body: Node) -> Compact:
        """What to compact."""
        return build(Compact, COMPACT.read(body, ""))

    def perform(self, actor: Actor, spec: Compact, ids: Mapping[str, Any]) -> Done:
        """Compact now."""
        done = compact(actor=actor, session_id=ids["session"], spec=spec)
        if done.job is not None:
            return Done({"job": str(done.job.id)}, to_json(later_json(done.job)), 202)
        return Done(done.as_json(), stored_json(done.as_json()))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The same answer: figures of our own, kept with the mark; a job as it stands now."""
        if "job" in resource:
            return to_json(later_json(require_job(actor.tenant_id, UUID(resource["job"]))))
        return stored_json(dict(resource))


class UndoWrite(JsonWrite[UndoCompaction]):
    """`POST sessions/{session}/compactions/{event}/undo`."""

    def parse(self, body: Node) -> UndoCompaction:
        """The note."""
        return build(UndoCompaction, UNDO.read(body, ""))

    def perform(self, actor: Actor, spec: UndoCompaction, ids: Mapping[str, Any]) -> Done:
        """Take it back."""
        event = undo_compaction(
            actor=actor, session_id=ids["session"], event=int(ids["event"]), spec=spec
        )
        return Done({"event": event}, stored_json({"event": event}))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The same answer."""
        return stored_json(dict(resource))


class CompactionsView(WriteView):
    """The compactions of a session."""

    scopes: ClassVar[Scopes] = {"GET": READ, "POST": EITHER}
    write = CompactWrite()
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="list_compactions",
            summary="List compactions, newest first, and what covers the history before the cut",
            tag="sessions",
            answer=COMPACTIONS,
            answer_note="Every compaction with what it replaced, and the ranges as they tile the log. "
            "Of a packet that grew from another (`grown_from`), `source_event_ids` and `elided` hold what it adds; "
            "`sources` and `pointers` count all.",
        ),
        "POST": Operation(
            id="compact",
            summary="Compact history now, or merge what stands for it",
            tag="sessions",
            answer=COMPACTED,
            answer_note="What was done. An unchanged log is answered with `unchanged`.",
            body=COMPACT,
            other_answers={202: (LATER, "A job lets a model write the summary.")},
            problems=(
                "depth_exceeded",
                "no_progress",
                "nothing_to_compact",
                "no_summariser",
                "compaction_off",
                "session_ended",
                "stale_head",
            ),
        ),
    }

    def get(self, request: Request, session: UUID) -> HttpResponse:
        """All of them; a session has few."""
        self.query()
        return json_response(to_json(compaction_list(self.actor(), session)))


class UndoCompactionView(WriteView):
    """One compaction."""

    scopes: ClassVar[Scopes] = {"POST": OPERATE}
    write = UndoWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="undo_compaction",
            summary="Undo a compaction",
            tag="sessions",
            answer=UNDONE,
            answer_note="The event that took it back; the next request is what it would have been without it.",
            body=UNDO,
            problems=("compaction_merged", "compaction_covered", "session_ended", "stale_head"),
        )
    }


__all__ = ["Compacted", "CompactionsView", "UndoCompactionView"]
