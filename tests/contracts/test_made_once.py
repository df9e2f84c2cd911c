"""A world that is made once is the same again: its rows, what it changed of those before it, and a session that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import transaction

from ctxengine.ledger.models import Tenant
from ctxengine.service.prove import prove_all
from ctxengine.service.verify import verify_chains
from tests import made_once as made
from tests.cast import Runtime, new_actor
from tests.made_once import made_once

pytestmark = pytest.mark.django_db


@contextmanager
def undone() -> Iterator[None]:
    """As if it were another test."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def _own_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "_made", {})


def worked() -> Runtime:
    runtime = Runtime()
    runtime.turn("Which port?", "5432.")
    return runtime


def test_each_test_has_the_same_rows_and_goes_its_own_way_from_there() -> None:
    with undone():
        first = made_once("worked", worked)
        rows = made._all_rows()
        first.turn("And the host?", "None.")
    for said in ("Are you sure?", "Thank you."):
        with undone():
            again = made_once("worked", worked)
            assert again is not first and again.session == first.session
            assert made._all_rows() == rows
            again.turn(said, "Yes.")
            assert [found.verdict for found in prove_all()] == ["identical"] * 2
            assert [report.problem for report in verify_chains()] == [None]


def test_what_it_changed_of_what_stood_before_is_changed_again() -> None:
    tenant = new_actor().tenant_id

    def renamed() -> None:
        Tenant.objects.filter(id=tenant).update(name="The other")

    for _ in range(2):
        with undone():
            made_once("renamed", renamed)
            assert Tenant.objects.get(id=tenant).name == "The other"
    Tenant.objects.filter(id=tenant).update(name="Another")
    with undone(), pytest.raises(AssertionError, match="tenant holds other rows than before"):
        made_once("renamed", renamed)


def test_a_world_grows_old(monkeypatch: pytest.MonkeyPatch) -> None:
    with undone():
        first = made_once("worked", worked)
    monkeypatch.setattr(made, "_STALE_S", 0.0)
    with undone():
        assert made_once("worked", worked).session != first.session
