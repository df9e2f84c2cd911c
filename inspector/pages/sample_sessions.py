"""Loading the sample sessions from an empty list."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from ctxengine.service.imports.start_import import KIND
from ctxengine.service.samples import ask_for_samples
from inspector.access import Viewer, member
from inspector.render import Twin, see_other


@require_POST
@member()
def load_samples(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Ask for the samples in this tenant, and go where the jobs are seen at work."""
    viewer.must_operate("Loading the sample sessions")
    ask_for_samples(actor=viewer.actor)
    jobs = reverse("inspector:jobs", args=[viewer.slug, Twin.HTML])
    return see_other(f"{jobs}?{urlencode({'kind': KIND})}")
