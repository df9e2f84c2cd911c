"""`CTX_READ_ONLY`: one place where every write of every door is refused."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from api.problems import problem_response

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
READS = frozenset({"login", "logout", "prove", "prove-newest", "persona-preview"})
"""Console routes whose POST changes nothing that is kept for others: who comes and goes, a proof, a preview."""
DETAIL = "This site is read-only for now (CTX_READ_ONLY): nothing can be changed, neither here nor over REST."


class ReadOnly:
    """Refuses what would write, before a view is reached."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        """Wrap the site."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Let the request through; the decision waits until its route is known."""
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: object
    ) -> HttpResponseBase | None:
        """403 for a write while the site is read-only."""
        match = request.resolver_match
        if not settings.CTX_READ_ONLY or request.method in _SAFE or match is None:
            return None
        if request.path.startswith("/api/"):
            return problem_response("read_only", 403, DETAIL)
        if match.url_name in READS:
            return None
        return render(request, "read_only.html", {"detail": DETAIL}, status=403)
