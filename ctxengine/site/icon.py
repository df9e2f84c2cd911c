"""The address at which browsers look for an icon where a page names none, as for raw JSON."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.templatetags.static import static
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe


@cache_control(public=True, max_age=86_400)
@require_safe
def icon(request: HttpRequest) -> HttpResponse:
    """The console's icon."""
    return HttpResponseRedirect(static("icon.svg"))
