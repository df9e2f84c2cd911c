"""What a log asks of Postgres at every step, as statements that can also be read ahead."""

from __future__ import annotations

from functools import cache
from uuid import UUID

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind
from ctxengine.ledger.ahead import Read
from ctxengine.ledger.models import Event
from ctxengine.ledger.rows import columns_of

HEAD_COLUMNS = (
    "last_sequence",
    "last_hash",
    "content_sequence",
    "act_sequence",
    "items",
    "units",
    "turns",
    "tokens",
    "pointer_tokens",
    "result_tokens",
)

_HEAD = f"SELECT {', '.join(HEAD_COLUMNS)} FROM session WHERE tenant_id = %s AND id = %s"  # noqa: S608
_HEAD_AND_RUN = (
    f"SELECT {', '.join(f's.{column}' for column in HEAD_COLUMNS)},"  # noqa: S608
    " r.state, r.outcome, r.settings, r.steps, s.epoch, s.requests FROM session s"
    " JOIN run r ON r.tenant_id = s.tenant_id AND r.session_id = s.id"
    " WHERE s.tenant_id = %s AND s.id = %s AND r.id = %s"
)
_UNIT_OF_CALL = (
    "SELECT c.unit_sequence FROM item c WHERE c.tenant_id = %s AND c.session_id = %s"
    " AND c.sequence = %s AND c.ordinal = %s AND c.kind = %s"
    " AND NOT EXISTS (SELECT 1 FROM item r WHERE r.tenant_id = c.tenant_id"
    " AND r.session_id = c.session_id AND r.unit_sequence = c.unit_sequence"
    " AND r.kind = %s AND r.wire_call_id = c.wire_call_id)"
)
_OPEN_CALLS = (
    "SELECT i.kind, i.sequence, i.ordinal, i.name, i.call_id, i.wire_call_id, i.run_id"
    " FROM unit u JOIN item i ON i.tenant_id = u.tenant_id AND i.session_id = u.session_id"
    " AND i.unit_sequence = u.sequence"
    " WHERE u.tenant_id = %s AND u.session_id = %s AND u.open_calls > 0"
    " ORDER BY i.sequence, i.ordinal"
)
_SUMS = (
    "SELECT sequence, index, before_turns, before_tokens, before_pointer_tokens, before_result_tokens"
    " FROM unit WHERE tenant_id = %s AND session_id = %s AND"
)
_CALL_AND_RESULT = (ItemKind.TOOL_CALL.value, ItemKind.TOOL_RESULT.value)


def head(tenant: str, session: str, *, locked: bool = False) -> Read:
    """The session's head; the row is locked until the transaction ends where that is asked for."""
    return Read(f"{_HEAD} FOR UPDATE" if locked else _HEAD, (tenant, session))


def head_and_run(tenant: str, session: str, run: UUID | str) -> Read:
    """The head, and how a run of the session stands."""
    return Read(_HEAD_AND_RUN, (tenant, session, str(run)))


def open_calls(tenant: str, session: str) -> Read:
    """Items of units in which calls wait."""
    return Read(_OPEN_CALLS, (tenant, session))


def unit_of_call(tenant: str, session: str, call: tuple[int, int]) -> Read:
    """The unit of a call that has no result yet, by (sequence, ordinal)."""
    return Read(_UNIT_OF_CALL, (tenant, session, *call, *_CALL_AND_RESULT))


@cache
def _latest(limited: bool) -> str:
    sql = (
        f"SELECT {columns_of(Event)} FROM event WHERE tenant_id = %s AND session_id = %s"  # noqa: S608
        " AND type = ANY(%s) AND sequence > %s ORDER BY sequence DESC OFFSET %s"
    )
    return f"{sql} LIMIT %s" if limited else sql


def latest_events(
    tenant: str, session: str, types: list[str], *, limit: int | None, skip: int, after: int
) -> Read:
    """The newest events of these types, all columns."""
    values = (tenant, session, types, after, skip)
    # A plan for the mean session walks a long one backwards until it has met enough of them: not prepared.
    return Read(_latest(limit is not None), values if limit is None else (*values, limit), False)


def place(tenant: str, session: str, sequence: EventSeq) -> Read:
    """The first unit that starts at `sequence` or behind it."""
    return sums(tenant, session, "sequence >= %s", sequence, "sequence")


def sums(tenant: str, session: str, condition: str, value: int, order: str) -> Read:
    """The first unit of an order that a condition holds for. Both come from closed sets of columns, never from input."""
    return Read(f"{_SUMS} {condition} ORDER BY {order} LIMIT 1", (tenant, session, value))
