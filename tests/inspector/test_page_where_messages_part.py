"""The cache panel names a message part only where the kept ends tell that very part."""

from __future__ import annotations

import pytest

from ctxengine.ledger.models import RequestRow
from ctxengine.service.specs import Actor
from tests.cast import Runtime
from tests.inspector.conftest import Cast

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("fragment", "exact", "words"),
    [
        (42, True, "from part 42 on"),
        (42, False, "somewhere behind part 41"),
        (0, False, "which part is not known"),
        (0, True, "from part 0 on"),
    ],
)
def test_a_part_is_named_as_exactly_as_it_is_known(
    cast: Cast, fragment: int, exact: bool, words: str
) -> None:
    runtime = Runtime(actor=Actor(cast.tenant.id, "system"))
    runtime.turn("One?", "Yes.")
    row = runtime.requests[-1]
    sides = {"before": "a" * 64, "after": "b" * 64}
    segment = {"fragment": fragment, "exact": exact, "before": "c" * 16, "after": "d" * 16}
    changed = {
        "part": "messages",
        "prefix_sha256": sides,
        "wire_prefix_sha256": sides,
        "segment": segment,
    }
    RequestRow.objects.filter(tenant_id=row.tenant_id, id=row.id).update(
        cache=row.cache | {"changed": changed}
    )
    assert f"the messages, {words}" in cast.page(f"requests/{row.id}/")
