"""Rows written as COPY lines are the rows that were meant, whatever their texts hold."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxengine.engine.events import EventType, ItemFacts
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind
from ctxengine.engine.log.records import BodyCommitment, EventRecord, ItemRecord, UnitFacts
from ctxengine.engine.memory import Stored
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.bulk import write_log
from ctxengine.ledger.copy_lines import BODY, EVENT, ITEM, REQUEST, UNIT, Columns
from ctxengine.ledger.models import Body, Event, ItemRow, UnitRow
from ctxengine.ledger.records import event_record, item_record, unit_row

pytestmark = pytest.mark.django_db

AT = datetime(2026, 5, 4, 3, 2, 1, 123456, tzinfo=UTC)
carried = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
hostile = st.one_of(
    carried, st.sampled_from(["\\", "\\N", "\t\n\r", "a\\tb", "\\.", "\u2028\v\f\b"])
)


@pytest.mark.parametrize(
    "columns", [BODY, EVENT, ITEM, REQUEST, UNIT], ids=lambda c: c.model.__name__
)
def test_a_line_has_every_column_of_its_table(columns: Columns) -> None:
    assert set(columns.names) == {str(f.column) for f in columns.model._meta.concrete_fields}
    assert len(set(columns.names)) == len(columns.names)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(hostile, min_size=6, max_size=6),
    data=st.one_of(
        st.binary(max_size=64), hostile.map(str.encode), st.sampled_from([b"\\x41", b"\x00\\000"])
    ),
    error=st.booleans(),
)
def test_what_was_written_is_read_back(texts: list[str], data: bytes, error: bool) -> None:
    tenant, session, run, body = uuid4(), uuid4(), str(uuid4()), str(uuid4())
    name, call_id, source, preview, note, owner = texts
    bare = EventRecord(
        EventSeq(1),
        EventType.SESSION_ENDED,
        Trust.PLATFORM,
        {},
        None,
        None,
        0,
        "0" * 64,
        "a" * 64,
        AT,
    )
    full = EventRecord(
        EventSeq(2), EventType.USER_MESSAGE, Trust.USER, {"extra": note, "n": 1.5}, run,
        BodyCommitment(body, "b" * 64, len(data)), 7, "a" * 64, "c" * 64, AT, note[:20],
    )  # fmt: skip
    facts = ItemFacts(
        0, ItemKind.TOOL_CALL, 7, 5, "d" * 64, 9, 8, name, call_id, "w", source, error, preview, 3
    )
    item = ItemRecord(EventSeq(2), EventSeq(2), Trust.USER, run, facts)
    unit = UnitFacts(EventSeq(2), 0, "step", run, EventSeq(2), 1, 7, 5, 2, 11, 10, 4, 1)
    write_log(
        tenant, session, Stored([bare, full], [item], [unit], {body: (b"salt", data)}), owner=owner
    )
    key = {"tenant_id": tenant, "session_id": session}
    events = [event_record(row) for row in Event.objects.filter(**key).order_by("sequence")]
    assert events == [bare, full]
    assert [item_record(row) for row in ItemRow.objects.filter(**key)] == [item]
    (row,) = UnitRow.objects.filter(**key)
    made = unit_row({name: str(value) for name, value in key.items()}, unit)
    for column in UNIT.names[2:]:
        assert str(getattr(row, column)) == str(getattr(made, column)), column
    kept = Body.objects.get(**key)
    assert (bytes(kept.salt), bytes(kept.data), kept.owner) == (b"salt", data, owner)
    assert (kept.sha256, kept.length, kept.erased_at) == ("b" * 64, len(data), None)
