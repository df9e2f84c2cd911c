"""What a pasted id, hash prefix or request label may name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

from ctxengine.ledger.models import ImportRow, PlanRow, RequestRow, SessionRow

_HEX = re.compile(r"[0-9a-f]{4,64}")
_UUID_PREFIX = re.compile(r"[0-9a-f]{4,8}(-[0-9a-f]{0,4}){0,3}(-[0-9a-f]{0,12})?")
_LIMIT = 10


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that a text names."""

    kind: str
    """`session`, `request`, `epoch` or `import`."""
    session_id: UUID | None
    key: str
    """Request id, epoch number or file digest; empty for a session."""
    label: str


def look_up(tenant_id: UUID, text: str) -> tuple[Found, ...]:
    """Everything whose id or hash starts with the text, at most ten of a kind. At most five queries."""
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
    return [Found("session", row.id, "", row.title or str(row.id)) for row in sessions[:_LIMIT]] + [
        _request(row) for row in requests.order_by("-created_at")[:_LIMIT]
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
        + [Found("import", None, row.sha256, row.name) for row in files[:_LIMIT]]
    )


def _request(row: RequestRow) -> Found:
    return Found("request", row.session_id, str(row.id), f"request {row.run_number}.{row.step}")


def _range(wanted: str) -> tuple[UUID, UUID]:
    digits = wanted.replace("-", "")
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def _starts(name: str, wanted: str) -> dict[str, str]:
    # A range is served by the plain index; hex digits all sort below "g".
    return {f"{name}__gte": wanted, f"{name}__lt": wanted + "g"}
