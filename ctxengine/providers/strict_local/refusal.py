"""Refusals, and their bodies in the three dialects, in the shapes that the SDKs' error classes read."""

from __future__ import annotations

from typing import Literal

from ctxengine.providers.strict_local.exchange import Answer, Json, json_answer

Dialect = Literal["anthropic", "openai", "ollama"]

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_OPENAI_TYPES = {429: "tokens"}
_OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class Refusal(Exception):
    """A request that is answered with an error.

    Args:
        message: the provider's wording.
        status: HTTP status.
        code: `error.code` (OpenAI) or `error.details.error_code` (Anthropic), where there is one.
        param: `error.param` (OpenAI).
        details: further members of `error.details` (Anthropic).
        retry_after: seconds for the `retry-after` header.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
        details: Json | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.param = param
        self.details = details or {}
        self.retry_after = retry_after


def answer_of(refusal: Refusal, dialect: Dialect, request_id: str) -> Answer:
    """The refusal as an HTTP answer."""
    if dialect == "anthropic":
        body = _anthropic(refusal, request_id)
    elif dialect == "openai":
        body = {"error": openai_error(refusal)}
    else:
        body = {"error": refusal.message}
    headers = {} if refusal.retry_after is None else {"retry-after": f"{refusal.retry_after:g}"}
    return json_answer(body, refusal.status, **headers)


def openai_error(refusal: Refusal) -> Json:
    """The inner object of an OpenAI error."""
    kind = "invalid_request_error" if refusal.status < 500 else "server_error"
    return {
        "message": refusal.message,
        "type": _OPENAI_TYPES.get(refusal.status, kind),
        "param": refusal.param,
        "code": refusal.code or _OPENAI_CODES.get(refusal.status),
    }


def _anthropic(refusal: Refusal, request_id: str) -> Json:
    error: Json = {
        "type": _ANTHROPIC_TYPES.get(refusal.status, "api_error"),
        "message": refusal.message,
    }
    if refusal.code:
        error["details"] = {"error_code": refusal.code, **refusal.details}
    return {"type": "error", "error": error, "request_id": request_id}
