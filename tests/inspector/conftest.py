"""The cast of the console's tests: one tenant with three roles, a stranger, and sessions that were worked on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from ctxengine.ledger.models import Role, Tenant
from tests.factories import LiveSession, make_person, make_tenant, pressed_session, worked_session
from tests.inspector.sessions import kept_session
from tests.made_once import made_once


@dataclass
class Cast:
    """Who and what a page test has at hand."""

    tenant: Tenant
    session: LiveSession
    viewer: Client
    operator: Client
    stands: str = ""

    def with_more(self, name: str, make: Callable[[], LiveSession]) -> LiveSession:
        """Another session of the tenant, made once for each of what may stand there before."""
        self.stands = f"{self.stands or self.tenant.id} {name}"
        return made_once(self.stands, make)

    @property
    def slug(self) -> str:
        return self.tenant.slug

    def url(self, path: str = "") -> str:
        """An address inside the tenant."""
        return f"/t/{self.slug}/{path}"

    def data(self, path: str, **query: Any) -> Any:
        """The JSON twin of a page or list."""
        response = self.operator.get(self.url(path), query)
        assert response.status_code == 200, (path, response.status_code)
        return json.loads(response.getvalue())

    def page(self, path: str = "", **data: Any) -> str:
        """The text of a page that an operator sees."""
        response = self.operator.get(self.url(path), data)
        assert response.status_code == 200, (path, response.status_code)
        return response.content.decode()


def client_of(person: Any) -> Client:
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def cast(db: None) -> Cast:
    """A tenant with a worked session, a viewer and an operator."""
    tenant, session, viewer, operator = made_once("cast", _people_and_a_session)
    return Cast(tenant, session, client_of(viewer), client_of(operator))


def _people_and_a_session() -> tuple[Tenant, LiveSession, Any, Any]:
    tenant = make_tenant()
    session = worked_session(tenant)
    return tenant, session, make_person(tenant, Role.VIEWER), make_person(tenant)


@pytest.fixture
def pressed(cast: Cast) -> LiveSession:
    """A session of the same tenant whose history had to yield."""
    return cast.with_more("pressed", lambda: pressed_session(cast.tenant, title="Nightly sync"))


@pytest.fixture
def kept(cast: Cast) -> LiveSession:
    """A session of the same tenant with state, a compaction, two epochs and a revoked tool."""
    return cast.with_more("kept", lambda: kept_session(cast.tenant))
