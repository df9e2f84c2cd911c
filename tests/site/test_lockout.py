"""Guessing a password is stopped, for that name from that address alone."""

from __future__ import annotations

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.test import RequestFactory
from pytest_django import Settings


def attempt(password: str, *, address: str) -> bool:
    request: HttpRequest = RequestFactory().post("/login/", REMOTE_ADDR=address)
    try:
        return authenticate(request, username="alice", password=password) is not None
    except PermissionDenied:
        return False


@pytest.mark.django_db
def test_after_too_many_failures_even_the_right_password_waits(settings: Settings) -> None:
    settings.AXES_ENABLED = True
    get_user_model().objects.create_user("alice", password="the right one")
    assert attempt("the right one", address="10.0.0.1")
    for _ in range(settings.AXES_FAILURE_LIMIT):
        assert not attempt("a guess", address="10.0.0.1")
    assert not attempt("the right one", address="10.0.0.1")
    assert attempt("the right one", address="10.0.0.2")
