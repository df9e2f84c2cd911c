"""The site as gunicorn serves it, with the places at which a test lets it die."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.urls import get_resolver

from ctxengine.site.wsgi import application as site
from tests.faults import deaths

# Loaded before gunicorn forks, so that a process that takes the place of a dead one answers at once.
get_resolver().url_patterns  # noqa: B018
deaths.bend_clock()
deaths.install("ctxengine.service.jobs.messages:deliver")


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answer one call, unless a test wants it otherwise."""
    deaths.begin()
    answer: Iterable[bytes] = site(environ, start_response)
    deaths.end(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
    return answer
