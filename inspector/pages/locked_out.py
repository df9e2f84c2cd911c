"""What too many wrong passwords lead to."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def locked_out(request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
    """429 with the time to wait; never says whether the account exists."""
    return render(request, "registration/locked_out.html", status=429)
