"""Requests that are refused before any page or endpoint sees them, such as those for a host that is not ours."""

from __future__ import annotations

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.views import defaults

from api.problems import problem_response

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A problem document under `/api/`, the page for everything else; both 400."""
    if not request.path.startswith(_API):
        return defaults.bad_request(request, exception)
    if isinstance(exception, DisallowedHost):
        return problem_response(
            "invalid_host",
            400,
            "This site does not answer to the host named in the Host header. Use its own name, or add this one to"
            " CTX_ALLOWED_HOSTS.",
        )
    return problem_response("unreadable_body", 400, "The request is malformed.")
