"""Whole numbers in an address."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from inspector.filters import read_whole


def whole(request: HttpRequest, name: str) -> int | None:
    """A parameter that is a whole number from nought up, or None when it is absent.

    Raises:
        Http404: it is something else; no page lives at such an address.
    """
    text = request.GET.get(name, "")
    if not text:
        return None
    number = read_whole(text)
    if number is None:
        raise Http404(f"{name} must be a whole number.")
    return number
