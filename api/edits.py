"""Writes that replace or change what is there: PUT and PATCH, done once like every other write."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpResponse
from rest_framework.request import Request

from api import idempotency
from api.auth import OPERATE, RUNTIME, Scopes, actor_of
from api.bodies import body_bytes
from api.pagination import parameters_of
from api.views import ApiView, JsonWrite, answered, parsed

EITHER = RUNTIME | OPERATE
"""A runtime's key or an operator's."""


class _EditView(ApiView):
    """An endpoint that edits through one `JsonWrite`."""

    write: ClassVar[JsonWrite[Any]]

    def edit(self, request: Request, ids: dict[str, Any]) -> HttpResponse:
        """Do the write once, however often it is sent with the same Idempotency-Key."""
        key = idempotency.key_of(request)
        actor = actor_of(request, key)
        parameters_of(request, {})
        spec = parsed(self.write, request)
        return answered(request, actor, self.write, spec, ids, body_bytes(request))


class PutView(_EditView):
    """An endpoint whose write is a PUT."""

    scopes: ClassVar[Scopes] = {"PUT": EITHER}

    def put(self, request: Request, **ids: Any) -> HttpResponse:
        """Replace what is there."""
        return self.edit(request, ids)


class PatchView(_EditView):
    """An endpoint whose write is a PATCH."""

    scopes: ClassVar[Scopes] = {"PATCH": EITHER}

    def patch(self, request: Request, **ids: Any) -> HttpResponse:
        """Change what is there."""
        return self.edit(request, ids)
