"""The cast: two tenants that must never see each other, and their keys."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.api.door import Door, key_for, new_tenant


@pytest.fixture
def tenant(db: None) -> UUID:
    """The tenant most tests act for."""
    return new_tenant("alice")


@pytest.fixture
def door(tenant: UUID) -> Door:
    """The door with a key that may do everything."""
    return Door(key_for(tenant))


@pytest.fixture
def stranger(db: None) -> Door:
    """The door with a key of another tenant."""
    return Door(key_for(new_tenant("charlie")))


@pytest.fixture
def nobody() -> Door:
    """The door without a key."""
    return Door("")
