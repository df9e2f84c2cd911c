"""The site with one view more, which does nothing but check a key and speak JSON: the least that a call on this server costs.

Served by the same gunicorn with the same settings as the product; see `bench.load`.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from ctxengine.site.wsgi import application  # first: it sets Django up

# isort: split
from django.http import HttpResponse
from django.urls import get_resolver, path
from rest_framework.request import Request

from api.answers import json_response, to_json
from api.auth import RUNTIME, Scopes, actor_of
from api.views import ApiView
from ctxengine.site import urls

__all__ = ["application"]

PATH = "/bare"


class BareView(ApiView):
    """Reads a JSON body and answers with its size, for a caller with a key."""

    schema = None
    scopes: ClassVar[Scopes] = {"POST": RUNTIME}

    def post(self, request: Request) -> HttpResponse:
        """Answer."""
        body: Any = json.loads(request.body)
        return json_response(
            to_json({"tenant": str(actor_of(request).tenant_id), "size": len(body)})
        )


urls.urlpatterns.insert(0, path(PATH.removeprefix("/"), BareView.as_view()))
get_resolver().url_patterns  # noqa: B018  before gunicorn forks
