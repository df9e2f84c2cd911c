"""How many calls a key may make in a minute (`CTX_RATE_LIMIT`), counted by each web process for itself."""

from __future__ import annotations

import time

from django.conf import settings
from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from ctxengine.service.issue_key import KeyIdentity

_WINDOW_S = 60


class KeyRate(BaseThrottle):
    """A fixed window for each key: whoever floods waits for the next one, and nobody else does."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Whether this call is within its key's share; keys that were refused never get here."""
        limit: int = settings.CTX_RATE_LIMIT
        if not limit or not isinstance(request.auth, KeyIdentity):
            return True
        now = time.time()
        self._left = _WINDOW_S - now % _WINDOW_S
        counter = f"rate:{request.auth.prefix}:{int(now // _WINDOW_S)}"
        cache.add(counter, 0, timeout=2 * _WINDOW_S)
        return bool(cache.incr(counter) <= limit)

    def wait(self) -> float:
        """Seconds until the next window."""
        return self._left
