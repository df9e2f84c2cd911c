"""`runs/{run}/responses`: what the model said, or how the provider failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from api.answers import array, joined, to_json
from api.openapi import FREE, TEXT, listed, record
from api.reads.calls import calls_again, newest_response
from api.schema import Component, Operation, Operations
from api.shapes.base import FieldErrors
from api.shapes.containers import Member, Record, build
from api.shapes.content import RawBody, RawObject
from api.shapes.scalars import Flag, Identifier, Whole
from api.v1.assemble import FOLLOW_UP_FIELDS, FOLLOW_UP_PARTS, followed, followed_again
from api.views import Done, JsonWrite, WriteView
from ctxengine.engine.legs.leg import MOST_LEGS
from ctxengine.engine.lexeme import Node, is_json_object
from ctxengine.service.remedies import remedy_of
from ctxengine.service.specs import Actor, CallAction, ResponseTaken, TakeResponse
from ctxengine.service.take_response import take_response

_ERROR = Record(
    Member("status", Whole(minimum=100, maximum=599), required=True),
    Member("body", RawBody(), note="The provider's error body, as text or as the object."),
)

_MOST_MS = 2**31 - 1
"""No call takes longer (milliseconds); a larger figure is no duration."""

TAKE_RESPONSE = Record(
    Member("request_id", Identifier(), note="Left out: the latest request of the run."),
    Member(
        "response",
        RawObject(),
        into="response_raw",
        note="`content` blocks with `stop_reason`, or the provider's whole response body.",
    ),
    Member("usage", RawObject(), into="usage_raw", note="Left out: the one in the response."),
    Member("latency_ms", Whole(minimum=0, maximum=_MOST_MS)),
    Member(
        "first_token_ms",
        Whole(minimum=0, maximum=_MOST_MS),
        note="From sending to the first token, where the answer was streamed.",
    ),
    Member("error", _ERROR, note="Instead of `response`: the provider refused or failed."),
    Member(
        "leg",
        Whole(minimum=0, maximum=MOST_LEGS - 1),
        note="Which of the request's `legs` it came from, from 0; left out: the session's model.",
    ),
    Member("assemble", Flag(), note="Answer with the next request as well, where there is one."),
    spec=TakeResponse,
)

RESPONSE_TAKEN = Component(
    "ResponseTaken",
    record(
        {
            "calls": listed(
                record(
                    {
                        "id": TEXT,
                        "name": TEXT,
                        "action": {"type": "string", "enum": ["execute", "answered", "refused"]},
                        "arguments": {**FREE, "description": "Of calls to execute, as received."},
                        "result": {**TEXT, "description": "What was answered in the call's place."},
                    },
                    optional=("arguments", "result"),
                )
            ),
            "next": {
                "type": "string",
                "enum": ["tools", "finish", "redo", "reassemble", "fail"],
            },
            "nudge": {**TEXT, "description": "What the platform told the model beside it."},
            "code": TEXT,
            "remedy": {**TEXT, "description": "What to do about a reported error."},
            "statement": {**TEXT, "description": "Ends the turn in place of the model's answer."},
            "quoted": {**listed(TEXT), "description": "Items that the statement quotes."},
            **FOLLOW_UP_FIELDS,
        },
        optional=("nudge", "code", "remedy", "statement", "quoted", *FOLLOW_UP_FIELDS),
    ),
    FOLLOW_UP_PARTS,
)


class ReportedResponse(NamedTuple):
    """A response, and whether the next request is wanted with the answer."""

    spec: TakeResponse
    assemble: bool


class TakeResponseWrite(JsonWrite[ReportedResponse]):
    """`POST runs/{run}/responses`."""

    def parse(self, body: Node) -> ReportedResponse:
        """Exactly one of a response and an error."""
        values = TAKE_RESPONSE.read(body, "")
        assemble = values.pop("assemble", False)
        error = values.pop("error", None)
        if (error is None) == ("response_raw" not in values):
            raise FieldErrors.one("response", "send exactly one of `response` and `error`.")
        if error is not None:
            values["error_status"] = error["status"]
            values["error_body_raw"] = error.get("body")
        return ReportedResponse(build(TakeResponse, values), assemble)

    def perform(self, actor: Actor, spec: ReportedResponse, ids: Mapping[str, Any]) -> Done:
        """Append it and say what comes next."""
        taken = take_response(actor=actor, run_id=ids["run"], spec=spec.spec)
        resource: dict[str, Any] = {
            "run": str(ids["run"]),
            "next": taken.next,
            "nudge": taken.nudge,
            "code": taken.code,
            "statement": taken.statement,
            "quoted": taken.quoted,
            "follow": spec.assemble and _nothing_waits(taken),
        }
        if taken.calls and actor.idempotency_key:
            resource["response"] = newest_response(actor, ids["run"])
            resource["actions"] = [call.action for call in taken.calls]
        return Done(resource, _taken_json(taken))

    def follow(self, actor: Actor, spec: ReportedResponse, done: Done) -> Done:
        """The next request, where it was asked for and nothing waits."""
        return followed(actor, done, done.resource["run"]) if done.resource["follow"] else done

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The same decision; names, arguments and results come from the ledger."""
        calls: list[CallAction] = []
        if "response" in resource:
            run, sequence, actions = (resource[name] for name in ("run", "response", "actions"))
            calls = calls_again(actor, run, sequence, actions)
        taken = ResponseTaken(
            next=resource["next"],
            calls=calls,
            nudge=resource["nudge"],
            code=resource["code"],
            statement=resource.get("statement"),
            quoted=list(resource.get("quoted", ())),
        )
        return followed_again(actor, _taken_json(taken), resource)


class ResponsesView(WriteView):
    """The model's answers in a run."""

    write = TakeResponseWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="take_response",
            summary="Report what the model said, or how the provider failed",
            tag="runs",
            answer=RESPONSE_TAKEN,
            answer_note="What to do next.",
            body=TAKE_RESPONSE,
            problems=(
                "not_assembled",
                "stale_request",
                "stale_head",
                "run_ended",
                "invalid_content",
                "unknown_leg",
            ),
        )
    }


def _nothing_waits(taken: ResponseTaken) -> bool:
    """Whether another request can be built now: nothing to execute and the run goes on."""
    if taken.next in {"finish", "fail"}:
        return False
    return not any(call.action == "execute" for call in taken.calls)


def _taken_json(taken: ResponseTaken) -> bytes:
    members = {
        "calls": array([_call_json(call) for call in taken.calls]),
        "next": to_json(taken.next),
    }
    for name in ("nudge", "code", "statement"):
        value = getattr(taken, name)
        if value is not None:
            members[name] = to_json(value)
    remedy = remedy_of(taken.code, over=taken.next == "fail")
    if remedy is not None:
        members["remedy"] = to_json(remedy)
    if taken.quoted:
        members["quoted"] = to_json(taken.quoted)
    return joined(members)


def _call_json(call: CallAction) -> bytes:
    members = {
        "id": to_json(call.id),
        "name": to_json(call.name),
        "action": to_json(call.action),
    }
    if call.action == "execute" and is_json_object(call.arguments_raw):
        members["arguments"] = call.arguments_raw.encode()
    if call.result is not None:
        members["result"] = to_json(call.result)
    return joined(members)
