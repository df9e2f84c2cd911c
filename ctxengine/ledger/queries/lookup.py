"""What a pasted id, hash prefix or request label may name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

from ctxengine.ledger.models import (
    Event,
    ImportRow,
    ItemRow,
    Job,
    PlanRow,
    RequestRow,
    RunRow,
    SearchHash,
    SessionRow,
)

_HEX = re.compile(r"[0-9a-f]{4,64}")
_UUID_PREFIX = re.compile(r"[0-9a-f]{4,8}(-[0-9a-f]{0,4}){0,3}(-[0-9a-f]{0,12})?")
_LIMIT = 10
_START_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that a text names."""

    kind: str
    """`session`, `request`, `run`, `job`, `epoch`, `import`, `event` or `item`."""
    session_id: UUID | None
    key: str
    """Id, number, or file digest; empty for a session."""
    label: str


def look_up(tenant_id: UUID, text: str) -> tuple[Found, ...]:
    """Everything whose id or hash starts with the text, at most ten of a kind. At most ten queries."""
    wanted = text.strip().lower()
    found: list[Found] = []
    if _UUID_PREFIX.fullmatch(wanted):
        found += _by_id(tenant_id, wanted)
    if _HEX.fullmatch(wanted):
        found += _by_hash(tenant_id, wanted)
    return tuple(dict.fromkeys(found))


def _by_id(tenant_id: UUID, wanted: str) -> list[Found]:
    low, high = _range(wanted)
    sessions = SessionRow.objects.filter(tenant_id=tenant_id, id__gte=low, id__lte=high)
    requests = RequestRow.objects.filter(tenant_id=tenant_id, id__gte=low, id__lte=high)
    runs = RunRow.objects.filter(tenant_id=tenant_id, id__gte=low, id__lte=high)
    jobs = Job.objects.filter(tenant_id=tenant_id, id__gte=low, id__lte=high)
    return [
        *(
            Found("session", row.id, "", row.title or str(row.id))
            for row in sessions.order_by("-active_at")[:_LIMIT]
        ),
        *(_request(row) for row in requests.order_by("-created_at")[:_LIMIT]),
        *(
            Found("run", row.session_id, str(row.number), f"run {row.number}")
            for row in runs.order_by("id")[:_LIMIT]
        ),
        *(
            Found("job", row.session_id, str(row.id), f"{row.kind}, {row.state}")
            for row in jobs.order_by("-created_at")[:_LIMIT]
        ),
    ]


def _by_hash(tenant_id: UUID, wanted: str) -> list[Found]:
    requests = RequestRow.objects.filter(tenant_id=tenant_id, **_starts("request_sha256", wanted))
    plans = PlanRow.objects.filter(tenant_id=tenant_id, **_starts("prefix_sha256", wanted))
    files = ImportRow.objects.filter(tenant_id=tenant_id, **_starts("sha256", wanted))
    return (
        [_request(row) for row in requests.order_by("-created_at")[:_LIMIT]]
        + [
            Found("epoch", row.session_id, str(row.epoch), f"epoch {row.epoch}")
            for row in plans.order_by("-created_at")[:_LIMIT]
        ]
        + [
            Found("import", None, row.sha256, row.name)
            for row in files.order_by("-created_at")[:_LIMIT]
        ]
        + _indexed(tenant_id, wanted)
    )


def start_of(hexdigits: str) -> int:
    """The number that the beginning of a hash makes, as the index keeps it."""
    return int(hexdigits[:_START_DIGITS], 16)


def _indexed(tenant_id: UUID, wanted: str) -> list[Found]:
    """Events and items whose hash starts so. Those of the last minute may not be indexed yet."""
    start = wanted[:_START_DIGITS]
    rows = SearchHash.objects.filter(
        tenant_id=tenant_id,
        start__gte=int(start.ljust(_START_DIGITS, "0"), 16),
        start__lte=int(start.ljust(_START_DIGITS, "f"), 16),
    ).order_by("start", "session_id", "sequence", "ordinal")[:_LIMIT]
    return [_place(row) for row in rows if _hash_of(row).startswith(wanted)]


def _hash_of(row: SearchHash) -> str:
    key = {"tenant_id": row.tenant_id, "session_id": row.session_id, "sequence": row.sequence}
    if row.ordinal < 0:
        found = Event.objects.filter(**key).values_list("hash", flat=True).first()
    else:
        items = ItemRow.objects.filter(**key, ordinal=row.ordinal)
        found = items.values_list("digest", flat=True).first()
    return found or ""


def _place(row: SearchHash) -> Found:
    if row.ordinal < 0:
        return Found("event", row.session_id, str(row.sequence), f"event {row.sequence}")
    item = f"{row.sequence}.{row.ordinal}"
    return Found("item", row.session_id, item, f"item {item}")


def _request(row: RequestRow) -> Found:
    return Found("request", row.session_id, str(row.id), f"request {row.run_number}.{row.step}")


def _range(wanted: str) -> tuple[UUID, UUID]:
    digits = wanted.replace("-", "")
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def _starts(name: str, wanted: str) -> dict[str, str]:
    # A range is served by the plain index; hex digits all sort below "g".
    return {f"{name}__gte": wanted, f"{name}__lt": wanted + "g"}
