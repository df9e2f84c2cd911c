"""Refusals as RFC 9457 problem documents, and the one handler that makes them (design 5).

`PROBLEMS` is the only list of codes: the OpenAPI document and the reference page render it.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any, NamedTuple

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError
from rest_framework.exceptions import APIException

from api.answers import to_json
from api.later import later_response
from ctxengine.engine.errors import EngineError
from ctxengine.service.specs import ServiceError
from ctxengine.service.summaries.ask import AnswerLater

PROBLEM_TYPE = "application/problem+json"

_log = logging.getLogger(__name__)


class ProblemKind(NamedTuple):
    """One stable code: the status it comes with, a short title, and what the caller should do."""

    code: str
    status: int
    title: str
    remedy: str


PROBLEMS: tuple[ProblemKind, ...] = (
    ProblemKind("invalid_json", 400, "The body is not JSON", "Send one JSON object."),
    ProblemKind("invalid_utf8", 400, "The body is not UTF-8", "Encode the body as UTF-8."),
    ProblemKind("too_deep", 400, "The JSON is nested too deeply", "Send it flatter."),
    ProblemKind("unreadable_body", 400, "The body could not be read", "Send it again whole."),
    ProblemKind("unknown_field", 400, "The body has unknown fields", "Remove the fields named."),
    ProblemKind("duplicate_field", 400, "A field stands twice", "Send each field once."),
    ProblemKind(
        "unknown_parameter", 400, "The query has unknown parameters", "Remove those named."
    ),
    ProblemKind("invalid_parameter", 400, "A query parameter cannot be used", "Mend its value."),
    ProblemKind("invalid_cursor", 400, "The cursor is not one of this list", "Start without it."),
    ProblemKind(
        "invalid_host", 400, "The site has another name", "Use a host of CTX_ALLOWED_HOSTS."
    ),
    ProblemKind(
        "invalid_idempotency_key",
        400,
        "The Idempotency-Key cannot be used",
        "Send 1 to 255 visible ASCII characters.",
    ),
    ProblemKind("unauthenticated", 401, "No valid API key", "Send `Authorization: Bearer KEY`."),
    ProblemKind("scope_missing", 403, "The key may not do this", "Use a key with that scope."),
    ProblemKind("read_only", 403, "The site is read-only", "Write later, or ask its operator."),
    ProblemKind("not_found", 404, "Nothing there", "Check the address; other tenants are hidden."),
    ProblemKind("method_not_allowed", 405, "Wrong method", "Use one that the Allow header names."),
    ProblemKind(
        "idempotency_mismatch",
        409,
        "The Idempotency-Key belongs to another call",
        "Use a fresh key for each new call.",
    ),
    ProblemKind(
        "idempotency_in_progress",
        409,
        "The first call with this key still runs",
        "Repeat after the seconds that Retry-After names.",
    ),
    ProblemKind("run_open", 409, "The session has an open run", "End it, or wait for its end."),
    ProblemKind("run_ended", 409, "The run has ended", "Start another run."),
    ProblemKind("job_ended", 409, "The job has ended", "Read what became of it."),
    ProblemKind("job_not_ended", 409, "The job has not ended", "Cancel it, or wait for its end."),
    ProblemKind("job_done", 409, "The job has succeeded", "Read its result."),
    ProblemKind("job_in_flight", 409, "Another job does the same", "Wait for its end."),
    ProblemKind("job_kind_unknown", 409, "This version knows no such jobs", "Ask for it anew."),
    ProblemKind(
        "principal_required",
        403,
        "Only the user may do this",
        "Name the session's principal, or use a key with the scope `operate`.",
    ),
    ProblemKind("depth_exceeded", 409, "A summary merges once", "Hand the work to a child run."),
    ProblemKind("no_progress", 409, "It would not shrink", "Hand the work to a child run."),
    ProblemKind("nothing_to_compact", 409, "Nothing is left to compact", "Append something first."),
    ProblemKind("nothing_to_reset", 409, "No turn stands before it", "Let a turn close first."),
    ProblemKind("reset_unavailable", 422, "This engine is not reset", "Compact the session."),
    ProblemKind("no_room", 409, "The model leaves no room for it", "Choose a larger model."),
    ProblemKind("does_not_pay", 409, "It does not pay", "Wait, or force it."),
    ProblemKind("abnormal_stop", 409, "The summary was not finished", "Try again."),
    ProblemKind("empty_summary", 409, "The summary is empty", "Try again."),
    ProblemKind("holds_tool_call", 409, "The summary is a tool call", "Try again."),
    ProblemKind("source_changed", 409, "What was summarised has changed", "Try again."),
    ProblemKind(
        "no_summariser",
        409,
        "No model can be called to summarise",
        "Set its key, or name another model in `summary_model`.",
    ),
    ProblemKind("probe_not_allowed", 409, "The probe would cost money", "Agree with `hosted`."),
    ProblemKind("provider_failed", 409, "The provider did not answer", "See `detail`."),
    ProblemKind(
        "compaction_failed",
        409,
        "A compaction failed, and nothing was changed",
        "Follow `remedy`; where `retryable`, assemble again after `retry_after_s`.",
    ),
    ProblemKind(
        "context_length_exceeded",
        409,
        "The request does not fit, and nothing was clipped",
        "End the run, compact by hand, or choose a larger window.",
    ),
    ProblemKind("compaction_off", 409, "The policy wants no summaries", "Change the policy."),
    ProblemKind("compaction_merged", 409, "It was merged", "Undo the merge first."),
    ProblemKind("compaction_covered", 409, "A later one rests on it", "Undo that one first."),
    ProblemKind("child_running", 409, "The child run has not ended", "Wait for its end."),
    ProblemKind("not_a_child", 422, "The run works for another", "Name a run of a child session."),
    ProblemKind(
        "invalid_parent",
        422,
        "A child without a parent, or of another principal",
        "Name the parent run; leave `principal` out.",
    ),
    ProblemKind("invalid_target", 422, "The form does not go with it", "Name another target."),
    ProblemKind("invalid_card", 422, "A card tool cannot be used", "Mend its card description."),
    ProblemKind("unknown_constraint", 422, "No such constraint", "Use an id of the state."),
    ProblemKind("constraints_full", 422, "Constraints are at their cap", "Lift one first."),
    ProblemKind("working_state_full", 422, "The working state is full", "Say it shorter."),
    ProblemKind("empty_text", 422, "A text is empty", "Say something."),
    ProblemKind("too_long", 422, "A text is too long", "Say it shorter."),
    ProblemKind("session_ended", 409, "The session has ended", "Open another session."),
    ProblemKind(
        "stale_request", 409, "The request is not the latest", "Answer the latest one, or assemble."
    ),
    ProblemKind(
        "not_assembled", 409, "The run has no request yet", "Assemble one, send it, then report."
    ),
    ProblemKind("stale_head", 409, "Another writer was faster", "Repeat the call."),
    ProblemKind(
        "stale_epoch",
        409,
        "The session has moved to another epoch",
        "Read what changed, then rotate from the epoch it names.",
    ),
    ProblemKind(
        "calls_pending", 409, "Calls have no result yet", "Send the results of the calls named."
    ),
    ProblemKind(
        "agent_changed",
        409,
        "This agent version is pinned with another specification",
        "Raise the version.",
    ),
    ProblemKind(
        "persona_stale", 409, "The persona was changed meanwhile", "Read it again, then save."
    ),
    ProblemKind("access_not_awaited", 409, "The run awaits no access", "Start another run."),
    ProblemKind(
        "budget_exceeded",
        409,
        "What may not yield does not fit",
        "Shrink the class named, or choose a larger window.",
    ),
    ProblemKind("no_input", 409, "There is nothing to answer", "Append a message first."),
    ProblemKind(
        "prefix_drift", 409, "The pinned prefix renders differently now", "Rotate the epoch."
    ),
    ProblemKind(
        "content_gone", 410, "Parts of it are no longer kept", "The replay still proves its hash."
    ),
    ProblemKind("length_required", 411, "The length is missing", "Send Content-Length."),
    ProblemKind("too_large", 413, "The body is too large", "Stay below the limit named."),
    ProblemKind(
        "too_many_calls",
        429,
        "The key has made too many calls",
        "Repeat after the seconds that Retry-After names.",
    ),
    ProblemKind(
        "unsupported_media_type", 415, "The body has the wrong type", "Send application/json."
    ),
    ProblemKind("missing_field", 422, "A required field is missing", "Send the fields named."),
    ProblemKind("invalid_field", 422, "A field has an unusable value", "Mend the fields named."),
    ProblemKind("invalid_content", 422, "The content cannot be read", "Mend it as described."),
    ProblemKind(
        "plan_overflow",
        422,
        "The frozen part does not fit its budget",
        "Shrink the class named, or raise its cap.",
    ),
    ProblemKind("unknown_call", 422, "No such open call", "Use ids of calls that wait."),
    ProblemKind(
        "trust_above_ceiling",
        422,
        "The result claims more trust than its tool allows",
        "Claim at most the tool's result_trust.",
    ),
    ProblemKind("unknown_model", 422, "Nobody knows whose model it is", "Write PROVIDER/NAME."),
    ProblemKind("too_many_cells", 422, "The replay is too large", "Ask for several replays."),
    ProblemKind(
        "nothing_to_replay", 409, "No model was asked yet", "Replay it once it has a request."
    ),
    ProblemKind("content_erased", 409, "Some of its content was erased", "Replay another session."),
    ProblemKind("unknown_engine", 422, "No such engine", "Use one of those named."),
    ProblemKind(
        "invalid_schema", 422, "A tool schema cannot be used", "Send a JSON Schema object."
    ),
    ProblemKind("duplicate_tool", 422, "Two tools share a name", "Rename one of them."),
    ProblemKind("duplicate_skill", 422, "Two skills share a name", "Rename one of them."),
    ProblemKind("unknown_tool", 422, "The plan has no such tool", "Use the names of its plan."),
    ProblemKind(
        "required_tool_missing",
        422,
        "A required tool does not fit",
        "Free its class, or defer others.",
    ),
    ProblemKind(
        "summary_model_not_allowed",
        422,
        "Another provider may not summarise",
        "Name a model of one of those in `detail`.",
    ),
    ProblemKind("unknown_class", 422, "No such budget class", "Use one of those named."),
    ProblemKind("unknown_reason", 422, "No such reason for a rotation", "Use one of those named."),
    ProblemKind("reason_required", 422, "The note is missing", "Say why in `note`."),
    ProblemKind("invalid_time", 422, "The time cannot be used", "Send it with an offset."),
    ProblemKind("invalid_timezone", 422, "No such time zone", "Use an IANA name."),
    ProblemKind("wire_invalid", 422, "The provider would refuse this", "Mend what is named."),
    ProblemKind("leg_unavailable", 422, "A leg cannot take this session", "Leave it out."),
    ProblemKind("unknown_leg", 422, "The request has no such leg", "Count its legs from 0."),
    ProblemKind(
        "unsupported_provider", 422, "No such provider", "Use one of those that are named."
    ),
    ProblemKind("import_refused", 422, "The file is no known transcript", "See `detail`."),
    ProblemKind("internal_error", 500, "The server failed", "Repeat; if it stays, tell us."),
    ProblemKind("unavailable", 503, "The database does not answer", "Repeat after a moment."),
)
"""Every code of this door. Services may add more; those get the title of their HTTP status."""

_KINDS = {kind.code: kind for kind in PROBLEMS}
_ENGINE_CODES = {
    "plan_overflow": "plan_overflow",
    "budget_exceeded": "budget_exceeded",
    "content_invalid": "invalid_content",
    "no_input": "invalid_content",
}
"""Engine errors that speak about what the caller sent; the others are our own failures."""
_RESERVED = frozenset({"type", "title", "status", "detail", "code"})


class Problem(Exception):
    """A refusal by the door itself; `code` is one of `PROBLEMS`, which also gives the status."""

    def __init__(
        self, code: str, detail: str, *, headers: dict[str, str] | None = None, **extra: Any
    ) -> None:
        super().__init__(detail)
        self.kind = _KINDS[code]
        self.detail = detail
        self.headers = headers or {}
        self.extra = extra


def problem_document(code: str, status: int, detail: str, extra: dict[str, Any]) -> dict[str, Any]:
    """The members of a problem document; extra members never displace the standard ones."""
    known = _KINDS.get(code)
    remedy = {"remedy": known.remedy} if known else {}
    return {
        "type": f"urn:ctxengine:problem:{code}",
        "title": known.title if known else HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        **remedy,
        **{name: value for name, value in extra.items() if name not in _RESERVED},
    }


def problem_response(
    code: str,
    status: int,
    detail: str,
    extra: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> HttpResponse:
    """A problem document as an answer."""
    body = to_json(problem_document(code, status, detail, extra or {}))
    response = HttpResponse(body, status=status, content_type=PROBLEM_TYPE)
    for name, value in (headers or {}).items():
        response[name] = value
    response["Cache-Control"] = "no-store"
    return response


def refusal_of(error: Exception) -> HttpResponse | None:
    """The answer to an error that the caller can do something about; None for our own failures."""
    match error:
        case Problem():
            kind = error.kind
            return problem_response(
                kind.code, kind.status, error.detail, error.extra, error.headers
            )
        case AnswerLater():
            return later_response(error)
        case ServiceError():
            return problem_response(error.code, error.status, error.detail, error.extra)
        case EngineError() if error.code in _ENGINE_CODES:
            kind = _KINDS[_ENGINE_CODES[error.code]]
            return problem_response(kind.code, kind.status, error.message, dict(error.numbers))
        case APIException():
            return _framework_refusal(error)
        case Http404() | PermissionDenied():
            return _of_kind("not_found", "There is nothing at this address for this key.")
        case RequestDataTooBig():
            return _of_kind("too_large", "The body is larger than this server accepts.")
        case MultiPartParserError() | SuspiciousOperation() | UnreadablePostError():
            return _of_kind("unreadable_body", "The body broke off, or its parts are malformed.")
        case _:
            return None


def handle_error(error: Exception, context: dict[str, Any]) -> HttpResponse:
    """DRF's exception handler: every error leaves as a problem document.

    What is logged about our own failures is the kind of error and the route, never a body.
    """
    refusal = refusal_of(error)
    if refusal is not None:
        return refusal
    request = context.get("request")
    match = getattr(request, "resolver_match", None)
    route = getattr(match, "route", "") or "unknown route"
    if isinstance(error, (OperationalError, InterfaceError)):
        _log.error("the database failed at %s", route, exc_info=error)
        unavailable = _of_kind("unavailable", "The database does not answer; nothing was changed.")
        unavailable["Retry-After"] = "1"
        return unavailable
    _log.error("unexpected error at %s", route, exc_info=error)
    return _of_kind("internal_error", "An unexpected error was logged on the server.")


def _framework_refusal(error: APIException) -> HttpResponse:
    status = error.status_code
    known = {
        401: "unauthenticated",
        403: "scope_missing",
        404: "not_found",
        405: "method_not_allowed",
        415: "unsupported_media_type",
        429: "too_many_calls",
    }
    headers: dict[str, str] = {}
    wait = getattr(error, "wait", None)
    if wait is not None:
        headers["Retry-After"] = str(wait)
    challenge = getattr(error, "auth_header", None)
    if challenge:
        headers["WWW-Authenticate"] = str(challenge)
    extra = getattr(error, "members", None)
    code = known.get(status, "invalid_parameter")
    return problem_response(code, status, str(error.detail), extra, headers)


def _of_kind(code: str, detail: str) -> HttpResponse:
    return problem_response(code, _KINDS[code].status, detail)
