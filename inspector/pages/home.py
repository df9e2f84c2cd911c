"""The root: sends a person to their tenant."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ctxengine.service.access import tenants_of


@require_safe
@never_cache
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The overview of the person's first tenant, or a page that says they have none."""
    tenants = tenants_of(request.user)
    if not tenants:
        return render(request, "no_tenant.html", status=403)
    return redirect("inspector:overview", slug=tenants[0].slug)
