"""A tenant with a key, as the tests of the REST door have it."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.api.door import Door, key_for, new_tenant


@pytest.fixture
def tenant(db: None) -> UUID:
    """A tenant of the test's own."""
    return new_tenant("bombed")


@pytest.fixture
def door(tenant: UUID) -> Door:
    """A key with every scope."""
    return Door(key_for(tenant))
