"""What must never happen, looked for in stored facts: each promise with the places where it does not hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Exists, F, IntegerField, OuterRef, Q, QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from ctxengine.engine.events import EventType
from ctxengine.engine.plan.epochs import EpochReason
from ctxengine.ledger.models import Event, PlanRow, RequestRow, RunRow, SessionRow, UnitRow
from ctxengine.ledger.queries.sessions import session_titles

SHOWN = 10
"""Places listed for each promise."""
UNASKED = frozenset(
    {
        EpochReason.SNAPSHOT_MISSING,
        EpochReason.BUILDER_CHANGED,
        EpochReason.PREFIX_HASH_CANONICALIZED,
    }
)
"""Reasons of a rotation that no person and no runtime gave."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One place where a promise does not hold."""

    session_id: UUID | None
    session_title: str
    detail: str
    request_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Promise:
    """Something that must never happen, and where it did."""

    title: str
    checked: str
    """What was looked at."""
    breaches: tuple[Breach, ...]
    more: bool = False
    """Whether there are others beyond those listed."""


class Place(NamedTuple):
    """Where something was found."""

    session_id: UUID
    detail: str
    request_id: UUID | None = None


Look = Callable[[UUID, datetime], list[Place]]
"""(tenant, since) -> up to one place more than are listed."""


def promises(tenant_id: UUID, since: datetime) -> tuple[Promise, ...]:
    """Every promise, checked on what happened since. One query for each, and one for titles."""
    found = [(title, checked, look(tenant_id, since)) for title, checked, look in _PROMISES]
    ids = {place.session_id for _, _, places in found for place in places}
    titles = session_titles(tenant_id, ids) if ids else {}
    return tuple(
        Promise(
            title,
            checked,
            tuple(
                Breach(
                    place.session_id,
                    titles.get(place.session_id, ""),
                    place.detail,
                    place.request_id,
                )
                for place in places[:SHOWN]
            ),
            len(places) > SHOWN,
        )
        for title, checked, places in found
    )


def _second_prefixes(tenant_id: UUID, since: datetime) -> list[Place]:
    rows = (
        RequestRow.objects.filter(tenant_id=tenant_id, created_at__gte=since)
        .order_by()
        .values("session_id", "epoch")
        .annotate(
            hashes=Count("prefix_sha256", distinct=True),
            wire_hashes=Count("wire_prefix_sha256", distinct=True),
        )
        .filter(Q(hashes__gt=1) | Q(wire_hashes__gt=1))
    )
    return [
        Place(
            row["session_id"],
            f"epoch {row['epoch']}: {row['hashes']} neutral and {row['wire_hashes']} wire hashes",
        )
        for row in rows[: SHOWN + 1]
    ]


def _strange_prefixes(tenant_id: UUID, since: datetime) -> list[Place]:
    plan = PlanRow.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        session_id=OuterRef("session_id"),
        epoch=OuterRef("epoch"),
    ).exclude(prefix_sha256=OuterRef("prefix_sha256"))
    rows = RequestRow.objects.filter(Exists(plan), tenant_id=tenant_id, created_at__gte=since)
    return [
        Place(row.session_id, f"request {row.run_number}.{row.step}", row.id)
        for row in _newest(rows)
    ]


def _over_budget(tenant_id: UUID, since: datetime) -> list[Place]:
    rows = RequestRow.objects.filter(
        tenant_id=tenant_id, created_at__gte=since, reconstructed=False
    ).annotate(usable=Cast(KT("budget__usable"), IntegerField()))
    return [
        Place(
            row.session_id,
            f"request {row.run_number}.{row.step}: {row.total_tokens:,} tokens, {row.usable:,} usable",
            row.id,
        )
        for row in _newest(rows.filter(total_tokens__gt=F("usable")))
    ]


def _unasked_epochs(tenant_id: UUID, since: datetime) -> list[Place]:
    asked = Q()
    for reason in EpochReason:
        if reason not in UNASKED:
            asked |= Q(payload__reasons__contains=[reason.value])
    rows = Event.objects.filter(
        tenant_id=tenant_id, type=EventType.EPOCH_ROTATED, recorded_at__gte=since
    ).exclude(asked)
    found = rows.order_by("-recorded_at").values("session_id", "payload")[: SHOWN + 1]
    return [Place(row["session_id"], _rotation(row["payload"])) for row in found]


def _rotation(payload: dict[str, object]) -> str:
    reasons = payload.get("reasons")
    named = (
        ", ".join(str(one).replace("_", " ") for one in reasons)
        if isinstance(reasons, list)
        else ""
    )
    return f"epoch {payload.get('epoch')}: {named or 'no reason stated'}"


def _disagreements(tenant_id: UUID, since: datetime) -> list[Place]:
    rows = RequestRow.objects.filter(
        tenant_id=tenant_id, created_at__gte=since, verdict__disagreement=True
    )
    return [
        Place(
            row.session_id,
            f"request {row.run_number}.{row.step}: we say {_cause(row, 'cause')},"
            f" the provider says {_cause(row, 'provider_reason')}",
            row.id,
        )
        for row in _newest(rows)
    ]


def _cause(row: RequestRow, name: str) -> str:
    return str(row.verdict.get(name) or "nothing").replace("_", " ")


def _open_calls(tenant_id: UUID, since: datetime) -> list[Place]:
    recent = SessionRow.objects.filter(tenant_id=tenant_id, active_at__gte=since).values("id")
    done = RunRow.objects.filter(
        tenant_id=OuterRef("tenant_id"), id=OuterRef("run_id"), outcome="completed"
    )
    rows = UnitRow.objects.filter(
        Exists(done), tenant_id=tenant_id, session_id__in=recent, open_calls__gt=0
    )
    return [
        Place(row.session_id, f"step at event {row.sequence}: {row.open_calls} open")
        for row in rows.order_by("session_id", "sequence")[: SHOWN + 1]
    ]


def _wrong_heads(tenant_id: UUID, since: datetime) -> list[Place]:
    last = Event.objects.filter(
        tenant_id=OuterRef("tenant_id"),
        session_id=OuterRef("id"),
        sequence=OuterRef("last_sequence"),
        hash=OuterRef("last_hash"),
    )
    rows = SessionRow.objects.filter(
        ~Exists(last), tenant_id=tenant_id, active_at__gte=since, last_sequence__gt=0
    )
    return [
        Place(row.id, f"head {row.last_sequence} names another hash")
        for row in rows.order_by("-active_at")[: SHOWN + 1]
    ]


def _newest(rows: QuerySet[RequestRow]) -> list[Any]:
    """The newest requests of a query, without their large columns."""
    return list(rows.order_by("-created_at").defer("inputs", "manifest", "cache")[: SHOWN + 1])


_PROMISES: tuple[tuple[str, str, Look], ...] = (
    ("Second prefix hash in an epoch", "every request of the window", _second_prefixes),
    (
        "Request whose prefix is not the pinned one",
        "every request of the window against its epoch's plan",
        _strange_prefixes,
    ),
    (
        "Prompt over its budget",
        "every live request of the window against what its budget left usable",
        _over_budget,
    ),
    (
        "Epoch that nobody asked for",
        "every rotation of the window whose reasons name no act of a person or a runtime",
        _unasked_epochs,
    ),
    (
        "Provider names another cause for a cache miss",
        "every verdict of the window with a reason of both sides",
        _disagreements,
    ),
    (
        "Call left without a result in a completed run",
        "every step of the sessions active in the window",
        _open_calls,
    ),
    (
        "Session head that is not its last event",
        "the hash chain's end of every session active in the window",
        _wrong_heads,
    ),
)
