"""`Idempotency-Key`: a repeated write is answered again, never done again (design 5).

A row is laid before the work and closed after it with the status and the ids from which the answer
is rebuilt. A refusal removes the row, since nothing was done. A process that dies leaves its row open; it names the
database connection of its claim, so that a repeat sees at once that nobody works on it any more.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from api.problems import Problem
from ctxengine.ledger.inserts import changed, laid
from ctxengine.ledger.models import Idempotency

KEPT = timedelta(hours=24)
"""How long a repeat is recognised."""
LEASE = timedelta(minutes=2)
"""A row that is open for longer belongs to a process that died; its work may be done again. Writes that wait have more.
This is for what the connection does not tell: a machine that vanished, or a pooler between us and the database."""
_HOLDER = "holder"
RETRY_AFTER_S = 1

_MAX_KEY_CHARS = 255
_SWEEP_ROWS = 200


class Earlier(NamedTuple):
    """What the first call with this key did."""

    status: int
    resource: dict[str, Any]


class Call(NamedTuple):
    """One keyed write, as it claims its key."""

    tenant_id: UUID
    key: str
    operation: str
    """Method and address."""
    digest: str
    """sha256 of query and body."""
    claimed_at: datetime
    """Marks this claim among those of earlier processes."""
    lease: timedelta = LEASE
    """How long such a write may take."""


def key_of(request: HttpRequest) -> str:
    """The key sent, or empty text.

    Raises:
        Problem: `invalid_idempotency_key`.
    """
    key: str | None = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if key is None:
        return ""
    visible = key.isascii() and key.isprintable() and key == key.strip()
    if not visible or not 1 <= len(key) <= _MAX_KEY_CHARS:
        raise Problem(
            "invalid_idempotency_key",
            f"The Idempotency-Key must be 1 to {_MAX_KEY_CHARS} visible ASCII characters; "
            f"{len(key)} characters were sent.",
        )
    return key


def call_of(
    request: HttpRequest, tenant_id: UUID, key: str, *content: bytes, lease: timedelta = LEASE
) -> Call:
    """What makes a call the same call: its address, its query and its body."""
    state = hashlib.sha256()
    for chunk in (request.META.get("QUERY_STRING", "").encode("utf-8", "replace"), *content):
        state.update(len(chunk).to_bytes(8, "big"))
        state.update(chunk)
    operation = _storable(f"{request.method} {request.path}"[:128])
    return Call(tenant_id, key, operation, state.hexdigest(), timezone.now(), lease)


def begin(call: Call) -> Earlier | None:
    """Claim the key for this call, or say what the first call with it did.

    Raises:
        Problem: `idempotency_mismatch` or `idempotency_in_progress`.
    """
    now = call.claimed_at
    if _laid(call):
        return None
    row = Idempotency.objects.filter(tenant_id=call.tenant_id, key=call.key).first()
    if row is None:
        # The call that held it was refused a moment ago.
        if not _laid(call):
            raise _in_progress()
        return None
    if row.created_at <= now - KEPT:
        _take_over(call, row)
        return None
    if (row.operation, row.body_sha256) != (call.operation, call.digest):
        raise Problem(
            "idempotency_mismatch",
            f"This Idempotency-Key was used for {row.operation} with another address or body; "
            "use a fresh key for each new call.",
            first_operation=row.operation,
        )
    if row.status is not None:
        return Earlier(row.status, row.resource)
    if row.created_at <= now - call.lease or _holder_is_gone(row):
        _take_over(call, row)
        return None
    raise _in_progress()


def _laid(call: Call) -> bool:
    row = Idempotency(
        tenant_id=call.tenant_id,
        key=call.key,
        operation=call.operation,
        body_sha256=call.digest,
        resource=_held_by_us(),
        created_at=call.claimed_at,
    )
    # Lost in a crash of the database it is as good as abandoned: what it announces was not done, or makes it durable.
    if not laid(row, durable=False):
        return False
    _sweep(call)
    return True


def finish(call: Call, status: int, resource: dict[str, Any]) -> None:
    """Close the row: from now on repeats are answered from these ids.

    Raises:
        Problem: `idempotency_in_progress`, when the claim was taken over by another process
            meanwhile; the caller's transaction must not be committed then.
    """
    closed = changed(
        "UPDATE idempotency SET status = %s, resource = %s"
        " WHERE tenant_id = %s AND key = %s AND created_at = %s AND status IS NULL",
        [status, json.dumps(_storable(resource)), call.tenant_id, call.key, call.claimed_at],
    )
    if not closed:
        raise _in_progress()


def amend(call: Call, resource: dict[str, Any]) -> None:
    """Replace the ids of a row that is closed. Lost in a crash of the database, a repeat makes the same addition again."""
    changed(
        "UPDATE idempotency SET resource = %s WHERE tenant_id = %s AND key = %s AND created_at = %s",
        [json.dumps(_storable(resource)), call.tenant_id, call.key, call.claimed_at],
        durable=False,
    )


def forget(call: Call) -> None:
    """Drop the claim of a call that changed nothing."""
    _claimed(call).delete()


def _claimed(call: Call) -> QuerySet[Idempotency]:
    return Idempotency.objects.filter(
        tenant_id=call.tenant_id, key=call.key, created_at=call.claimed_at, status=None
    )


def _take_over(call: Call, row: Idempotency) -> None:
    # As it was read: a holder that finished meanwhile has closed the row, and its connection with it.
    won = Idempotency.objects.filter(
        tenant_id=call.tenant_id, key=call.key, created_at=row.created_at, status=row.status
    ).update(
        operation=call.operation,
        body_sha256=call.digest,
        status=None,
        resource=_held_by_us(),
        created_at=call.claimed_at,
    )
    if not won:
        raise _in_progress()


def _held_by_us() -> dict[str, Any]:
    """What an open row says of its holder: the number of the connection's server process."""
    connection.ensure_connection()
    return {_HOLDER: connection.connection.info.backend_pid}


def _holder_is_gone(row: Idempotency) -> bool:
    """Whether the connection that laid an open row is closed: its process died, or the database restarted under it.

    Should the process live after all, it can no longer commit what it did: `finish` compares its claim.
    """
    holder, own = row.resource.get(_HOLDER), _held_by_us()[_HOLDER]
    if not isinstance(holder, int):
        return False
    with connection.cursor() as cursor:
        # Behind a pooler the numbers are not the server's, and say nothing. A holder that is us has ended its call.
        cursor.execute(
            "SELECT pg_backend_pid() = %s AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s AND pid <> %s)",
            [own, holder, own],
        )
        (gone,) = cursor.fetchone() or (False,)
    return bool(gone)


def _in_progress() -> Problem:
    return Problem(
        "idempotency_in_progress",
        f"The first call with this key is still at work; repeat after {RETRY_AFTER_S} s.",
        headers={"Retry-After": str(RETRY_AFTER_S)},
    )


def _sweep(call: Call) -> None:
    """Remove some expired rows on about every 64th claim, so that the table stays small."""
    if not call.digest.startswith(("00", "40", "80", "c0")):
        return
    old = Idempotency.objects.filter(
        tenant_id=call.tenant_id, created_at__lte=call.claimed_at - KEPT
    )
    keys = list(old.values_list("key", flat=True)[:_SWEEP_ROWS])
    old.filter(key__in=keys).delete()


def _storable(value: Any) -> Any:
    """The value without the two things that jsonb cannot hold: U+0000 and lone surrogates."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {name: _storable(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_storable(member) for member in value]
    return value
