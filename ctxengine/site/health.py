"""The health check: is this process able to serve, database included."""

from __future__ import annotations

import logging

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

_log = logging.getLogger(__name__)


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 `{"status": "ok"}`, or 503 naming the part that does not answer."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        _log.warning("health check: the database does not answer (%s)", type(error).__name__)
        return JsonResponse({"status": "unavailable", "part": "database"}, status=503)
    return JsonResponse({"status": "ok"})
