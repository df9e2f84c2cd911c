"""`runs/{run}/assemble`: the next model request, ready to be sent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api import idempotency
from api.answers import array, joined, stored_json, to_json, with_members
from api.auth import actor_of
from api.bodies import body_bytes
from api.later import later_json
from api.openapi import (
    FLAG,
    FREE,
    NUMBER,
    SHA256,
    TEXT,
    UUID_TEXT,
    WHOLE,
    component_of,
    listed,
    nullable,
    record,
)
from api.pagination import Parameter, parameters_of, seconds, word
from api.problems import problem_document
from api.reads.requests import assembled_again
from api.schema import PROBLEM, Component, Operation, Operations
from api.shapes.chosen_model import MODEL
from api.shapes.containers import ListOf, Member, Record, build
from api.shapes.scalars import AnyText, Identifier, Moment, Number, Text
from api.views import Done, JsonWrite, WriteView, answered, parsed
from ctxengine.engine.lexeme import Node
from ctxengine.engine.manifest import Budget, Manifest
from ctxengine.service.assemble import assemble
from ctxengine.service.leg_specs import AssembledLeg
from ctxengine.service.specs import (
    LONGEST_WAIT_S,
    Actor,
    Assemble,
    Assembled,
    MemoryLine,
    ServiceError,
)
from ctxengine.service.summaries.ask import AnswerLater

_LINE = Record(
    Member("text", AnyText(), required=True),
    Member("id", Text()),
    Member("score", Number()),
    spec=MemoryLine,
)

ASSEMBLE = Record(
    Member("recall", ListOf(_LINE), note="Read once per step; a repeat keeps the first ones."),
    Member("corrections", ListOf(_LINE), note="Never yield."),
    Member("knowledge", ListOf(_LINE)),
    Member("now", Moment()),
    Member("timezone", Text()),
    Member("base_request_id", Identifier(), note="Answer with what changed since this request."),
    Member(
        "legs",
        ListOf(MODEL),
        note=(
            "Up to four fallback models: the request is sized for the smallest, and each gets a body. "
            "Left out: those of the run so far; `[]` ends them."
        ),
    ),
    spec=Assemble,
)

_BEFORE_AFTER = record({"before": TEXT, "after": TEXT})
_CHANGED = record(
    {
        "part": {
            "type": "string",
            "enum": ["model", "tools", "system", "messages", "prefix"],
            "description": "The first part that differs.",
        },
        "prefix_sha256": _BEFORE_AFTER,
        "wire_prefix_sha256": _BEFORE_AFTER,
        "segment": nullable(
            record(
                {"fragment": WHOLE, "exact": FLAG, "before": TEXT, "after": TEXT},
                note=(
                    "Of messages: the place of the first message part that may differ (`exact`: that very part does; else it "
                    "or one behind it), and the start of the digest of everything up to the end of its segment; empty where a "
                    "request ends before it."
                ),
            )
        ),
    }
)

MANIFEST = component_of("Manifest", Manifest)
BUDGET = component_of("Budget", Budget)
CACHE = Component(
    "Cache",
    record(
        {
            "markers": listed(
                record(
                    {
                        "name": TEXT,
                        "ttl": TEXT,
                        "after_fragment": nullable(NUMBER),
                        "tokens": nullable(NUMBER),
                    },
                    optional=("after_fragment", "tokens"),
                )
            ),
            "session_key": TEXT,
            "predicted": nullable(
                record(
                    {
                        "read": NUMBER,
                        "write": NUMBER,
                        "fresh": NUMBER,
                        "why": TEXT,
                        "lost": NUMBER,
                        "cause": TEXT,
                        "by": {
                            "type": "string",
                            "enum": ["provider", "profile"],
                            "description": "Whose word the prediction is: the provider's documents, or what was seen of the "
                            "model. Left out where nothing is known.",
                        },
                    },
                    optional=("lost", "cause", "by"),
                )
            ),
            "warnings": listed(TEXT),
            "changed": nullable(_CHANGED),
        },
        optional=("markers", "session_key", "predicted", "warnings", "changed"),
    ),
)
ASSEMBLED = Component(
    "Assembled",
    record(
        {
            "request_id": UUID_TEXT,
            "request": {**FREE, "description": "The provider's request body: send it as it is."},
            "delta": {**FREE, "description": "Instead of `request`, where a known base was named."},
            "prefix_sha256": SHA256,
            "wire_prefix_sha256": SHA256,
            "request_sha256": SHA256,
            "manifest": MANIFEST.ref,
            "budget": BUDGET.ref,
            "cache": CACHE.ref,
            "legs": listed(
                record(
                    {
                        "provider": TEXT,
                        "model": TEXT,
                        "request": {**FREE, "description": "That provider's request body."},
                        "wire_prefix_sha256": SHA256,
                        "request_sha256": SHA256,
                        "tokens": {**WHOLE, "description": "By that model's own counter."},
                    }
                )
            ),
        },
        optional=("request", "delta", "legs"),
    ),
    (MANIFEST, BUDGET, CACHE),
)
LATER = Component(
    "AnswerLater",
    record(
        {
            "job": record(
                {
                    "id": UUID_TEXT,
                    "kind": TEXT,
                    "state": {**TEXT, "description": "As in `GET jobs/{id}`."},
                    "phase": TEXT,
                    "percent": WHOLE,
                    "url": TEXT,
                }
            ),
            "retry_after_s": WHOLE,
        }
    ),
)
LATER_NOTE = "A model writes a summary first: ask again when the job has ended."
"""What the 202 means."""
FOLLOW_UP_FIELDS = {
    "assembled": ASSEMBLED.ref,
    "assemble_later": LATER.ref,
    "assemble_problem": PROBLEM.ref,
}
"""What `"assemble": true` adds to the answer of another call: one of them, or none while calls
wait for results."""
FOLLOW_UP_PARTS = (ASSEMBLED, LATER, PROBLEM)
ASSEMBLE_PROBLEMS = (
    "budget_exceeded",
    "run_ended",
    "calls_pending",
    "stale_head",
    "content_gone",
    "unsupported_provider",
    "leg_unavailable",
)


def assembled_json(assembled: Assembled) -> bytes:
    """The answer. The request is joined in as it is, never written again.

    Raises:
        ServiceError: 410 `content_gone` where the step was built already and some of its content was erased since.
    """
    sent = assembled.body if assembled.delta is None else assembled.delta
    if not sent or not all(leg.body for leg in assembled.legs):
        raise ServiceError(
            "content_gone",
            410,
            "This step was built before some of its content was erased, and cannot be handed out again. Append a message, or "
            "end the run; the next step is built without it.",
        )
    return joined(
        {
            "request_id": to_json(assembled.request_id),
            "request" if assembled.delta is None else "delta": sent,
            "prefix_sha256": to_json(assembled.prefix_sha256),
            "wire_prefix_sha256": to_json(assembled.wire_prefix_sha256),
            "request_sha256": to_json(assembled.request_sha256),
            "manifest": stored_json(assembled.manifest),
            "budget": stored_json(assembled.budget),
            "cache": stored_json(assembled.cache),
            **(
                {"legs": array([_leg_json(leg) for leg in assembled.legs])}
                if assembled.legs
                else {}
            ),
        }
    )


def _leg_json(leg: AssembledLeg) -> bytes:
    return joined(
        {
            "provider": to_json(leg.provider),
            "model": to_json(leg.model),
            "request": leg.body,
            "wire_prefix_sha256": to_json(leg.wire_prefix_sha256),
            "request_sha256": to_json(leg.request_sha256),
            "tokens": to_json(leg.tokens),
        }
    )


def followed(actor: Actor, done: Done, run: str) -> Done:
    """An answer with the run's next request in it, as `"assemble": true` asks.

    What was reported stays reported, so a refusal to assemble is told inside a good answer.
    """
    try:
        built = assemble(actor=actor, run_id=UUID(run), spec=Assemble())
    except AnswerLater as later:
        # Nothing is kept of this: a repeat of the call follows up again.
        return done._replace(
            body=with_members(done.body, {"assemble_later": stored_json(later_json(later.job))})
        )
    except ServiceError as error:
        document = problem_document(error.code, error.status, error.detail, error.extra)
        extra: dict[str, Any] = {"problem": document}
        members = {"assemble_problem": stored_json(document)}
    else:
        extra = {"assembled": str(built.request_id)}
        members = {"assembled": assembled_json(built)}
    return done._replace(resource={**done.resource, **extra}, body=with_members(done.body, members))


def followed_again(actor: Actor, body: bytes, resource: Mapping[str, Any]) -> bytes:
    """The same answer from stored ids; a process that died before it followed up is made good."""
    if "assembled" in resource:
        members = {"assembled": assembled_json(assembled_again(actor, resource["assembled"]))}
    elif "problem" in resource:
        members = {"assemble_problem": stored_json(resource["problem"])}
    elif resource.get("follow"):
        return followed(actor, Done({}, body), resource["run"]).body
    else:
        members = {}
    return with_members(body, members)


class AssembleWrite(JsonWrite[Assemble]):
    """`POST runs/{run}/assemble`."""

    repeatable = True
    lease = idempotency.LEASE + timedelta(seconds=LONGEST_WAIT_S)

    def parse(self, body: Node) -> Assemble:
        """What the runtime adds to this step."""
        return build(Assemble, ASSEMBLE.read(body, ""))

    def perform(self, actor: Actor, spec: Assemble, ids: Mapping[str, Any]) -> Done:
        """Build the request of this step, or find the one that was built."""
        done = assemble(actor=actor, run_id=ids["run"], spec=spec)
        base = str(spec.base_request_id) if done.delta is not None else None
        return Done({"assembled": str(done.request_id), "base": base}, assembled_json(done))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The request built then, from the ledger."""
        return assembled_json(assembled_again(actor, resource["assembled"], resource.get("base")))


COMPACTION_PARAMETERS: dict[str, Parameter] = {
    "compaction": word(
        "Where a model must summarise first: `job` (the default) answers 202 at once, `wait` waits.",
        "job",
        "wait",
    ),
    "wait_s": seconds(
        "Longest wait; then the answer is 202 after all. 30 when left out.", LONGEST_WAIT_S
    ),
}


class AssembleView(WriteView):
    """The next request of a run."""

    write = AssembleWrite()

    def post(self, request: Request, **ids: Any) -> HttpResponse:
        """Build it once, however often it is sent; a 202 leaves no mark, so that its repeat gets the request."""
        actor = actor_of(request, idempotency.key_of(request))
        query = parameters_of(request, COMPACTION_PARAMETERS)
        spec = parsed(self.write, request).model_copy(update=query)
        return answered(request, actor, self.write, spec, ids, body_bytes(request))

    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="assemble",
            summary="Build the next model request",
            tag="runs",
            answer=ASSEMBLED,
            answer_note="The request, and why it looks as it does.",
            body=ASSEMBLE,
            body_required=False,
            parameters=COMPACTION_PARAMETERS,
            other_answers={202: (LATER, LATER_NOTE)},
            problems=ASSEMBLE_PROBLEMS,
            description=(
                "With nothing appended since, the same request comes back: same id, same bytes."
            ),
        )
    }
