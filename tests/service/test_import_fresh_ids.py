"""Ids made many at a time are the ids that one at a time would be."""

from __future__ import annotations

from itertools import islice
from uuid import RFC_4122, UUID

from ctxengine.service.imports.fresh_ids import id_texts


def test_ids_made_in_bulk_are_random_ids_each_of_its_own() -> None:
    texts = list(islice(id_texts(), 1_000))
    ids = [UUID(text) for text in texts]
    assert [str(known) for known in ids] == texts
    assert {(known.version, known.variant) for known in ids} == {(4, RFC_4122)}
    assert len(set(ids)) == len(ids)
