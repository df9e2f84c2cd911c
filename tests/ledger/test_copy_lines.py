"""Rows written as COPY lines are the rows that were meant, whatever their texts hold, by the path that imports take."""

from __future__ import annotations

from dataclasses import astuple
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxengine.engine.events import EventDraft, EventType, ItemFacts
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, ItemKind
from ctxengine.engine.log.chain import first_damage
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.bulk import write_lines
from ctxengine.ledger.copy_lines import BODY, EVENT, ITEM, REQUEST, UNIT, Columns
from ctxengine.ledger.models import Body, Event, ItemRow, UnitRow
from ctxengine.ledger.records import event_record, item_record, unit_row
from ctxengine.service.imports.import_log import Content, ImportLog

pytestmark = pytest.mark.django_db

AT = datetime(2026, 5, 4, 3, 2, 1, 123456, tzinfo=UTC)
HEAD = EventSeq(0)
carried = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
hostile = st.one_of(
    carried, st.sampled_from(["\\", "\\N", "\t\n\r", "a\\tb", "\\.", "\u2028\v\f\b", "\\x41"])
)
raw_texts = st.one_of(
    hostile, st.text(), st.sampled_from(["\ud800", "\x00\\000", "\ud83d\x00\\", "\\\\\x00\t"])
)


@pytest.mark.parametrize(
    "columns", [BODY, EVENT, ITEM, REQUEST, UNIT], ids=lambda c: c.model.__name__
)
def test_a_line_has_every_column_of_its_table(columns: Columns) -> None:
    assert set(columns.names) == {str(f.column) for f in columns.model._meta.concrete_fields}
    assert len(set(columns.names)) == len(columns.names)


def logs_of(tenant: UUID, session: UUID) -> tuple[MemoryLog, ImportLog]:
    """A log as anybody keeps it and one as an import does; ids and salts are the same."""
    first, second = count(1), count(1)
    return (
        MemoryLog(
            str(tenant), str(session), salt=lambda: b"salt", body_id=lambda _: named(next(first))
        ),
        ImportLog(
            str(tenant), str(session), salt=lambda: b"salt", body_id=lambda _: named(next(second))
        ),
    )


def named(number: int) -> str:
    return str(UUID(int=number))


def take_in(memory: MemoryLog, made: ImportLog, content: Content) -> None:
    """The same content event in both, by the path of each."""
    call = content.answers
    draft = EventDraft(
        type=content.type,
        trust=content.trust,
        payload=content.payload,
        run=content.run,
        body=content.raw,
        format=content.format,
        items=tuple(ItemFacts(*row) for row in content.rows),
        answers=(call.sequence, call.ordinal) if call else None,
    )
    memory.append([draft], expected=None, at=AT)
    made.append_content(content, AT)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(hostile, min_size=5, max_size=5),
    raws=st.lists(raw_texts, min_size=3, max_size=3),
    error=st.booleans(),
)
def test_what_an_import_writes_is_read_back_and_is_what_any_log_would_hold(
    texts: list[str], raws: list[str], error: bool
) -> None:
    tenant, session, run = uuid4(), uuid4(), str(uuid4())
    name, call_id, source, preview, note = texts
    memory, made = logs_of(tenant, session)
    begin = EventDraft(
        EventType.SESSION_IMPORTED, Trust.PLATFORM, {"key": note, "items_in": 3}, body=None
    )
    asked = ItemFacts(
        0, ItemKind.USER_MESSAGE, 4, 4, "a" * 64, 2, 2, "", "", "", source, False, preview, 0
    )
    first = EventDraft(
        EventType.USER_MESSAGE, Trust.USER, {"format": "openai_chat", "extra": note}, run, raws[0],
        ContentFormat.OPENAI_CHAT, (asked,),
    )  # fmt: skip
    for log in (memory, made):
        log.append([begin, first], expected=None, at=AT)
    called = ItemFacts(
        0, ItemKind.TOOL_CALL, 7, 5, "d" * 64, 9, 8, name, call_id, "w", source, error, preview, 3
    )
    answered = ItemFacts(
        0, ItemKind.TOOL_RESULT, 9, 3, "e" * 64, 5, 5, name, "", "w", source, error, preview, 0
    )
    payload: dict[str, Any] = {"format": "openai_chat", "extra": note}
    take_in(memory, made, Content(
        EventType.RESPONSE_COMPLETED, ContentFormat.OPENAI_CHAT, Trust.MODEL, run, raws[1],
        payload | {"stop_reason": preview}, [astuple(called)], None,
    ))  # fmt: skip
    call = made.open_call(3, 0)
    take_in(memory, made, Content(
        EventType.TOOL_RESULT, ContentFormat.OPENAI_CHAT, Trust.EXTERNAL_UNTRUSTED, run, raws[2],
        payload | {"answers": "3.0"}, [astuple(answered)], call,
    ))  # fmt: skip
    ended = {"outcome": "completed", "opaque_dropped": 0}
    memory.append(
        [EventDraft(EventType.RUN_ENDED, Trust.PLATFORM, ended, run)], expected=None, at=AT
    )
    made.append_act(EventType.RUN_ENDED, run, ended, AT)
    assert made.head() == memory.head()
    write_lines(made.hand_over(HEAD, last=True))
    assert_rows_are_those_of(memory, tenant, session, raws)


def assert_rows_are_those_of(
    memory: MemoryLog, tenant: UUID, session: UUID, raws: list[str]
) -> None:
    key = {"tenant_id": tenant, "session_id": session}
    events = [event_record(row) for row in Event.objects.filter(**key).order_by("sequence")]
    assert events == list(memory.events())
    assert first_damage(events, tenant=str(tenant), session=str(session)) is None
    items = ItemRow.objects.filter(**key).order_by("sequence")
    assert [item_record(row) for row in items] == [
        item for start in memory._starts for item in memory._items[start]
    ]
    units = UnitRow.objects.filter(**key).order_by("sequence")
    for row, unit in zip(units, memory._units, strict=True):
        meant = unit_row({name: str(value) for name, value in key.items()}, unit)
        for column in UNIT.names[2:]:
            assert str(getattr(row, column)) == str(getattr(meant, column)), column
    bodies = list(Body.objects.filter(**key).order_by("id"))
    data = [raw.encode("utf-8", "surrogatepass") for raw in raws]
    assert [bytes(body.data) for body in bodies] == data
    assert [body.length for body in bodies] == list(map(len, data))
    assert {(bytes(body.salt), body.owner, body.erased_at) for body in bodies} == {
        (b"salt", "", None)
    }


def test_only_events_with_content_are_the_newest_content() -> None:
    _, log = logs_of(uuid4(), uuid4())
    told = EventDraft(EventType.USER_MESSAGE, Trust.USER, {"format": "openai_chat"}, None, "{}")
    planned = EventDraft(EventType.PLAN_CREATED, Trust.PLATFORM, body="a plan")
    log.append([planned], expected=None, at=AT)
    assert log.newest_content is None
    log.append([told, planned], expected=None, at=AT)
    assert log.newest_content is EventType.USER_MESSAGE
    log.append([planned], expected=None, at=AT)
    assert log.newest_content is EventType.USER_MESSAGE
