"""One request with its neighbours: what its page shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ctxengine.engine.cache.predict import UNPREDICTED
from ctxengine.engine.manifest import Budget, Manifest
from ctxengine.ledger.models import PlanRow, RequestRow
from ctxengine.ledger.queries.usage import Usage, usage_of


@dataclass(frozen=True, slots=True)
class CacheMarker:
    """A cache breakpoint that the request asked for."""

    name: str
    ttl: str
    after_fragment: int | None
    """Place of the last message part it closes, from 0; None for the two prefix markers."""


@dataclass(frozen=True, slots=True)
class CacheChange:
    """Which bytes a request no longer repeats of the one before. Digests stand as before and after."""

    part: str
    """The first that differs: `model`, `tools`, `system` or `messages`; `prefix` where no more is known."""
    wire_prefix: tuple[str, str]
    fragment: int | None = None
    """Place of the first message part that may differ, from 0: those before it are the same."""
    segment: tuple[str, str] = ("", "")
    """Of everything up to the end of the first segment that differs; empty where a request ends before."""
    exact: bool = False
    """Whether that very part differs; else it or one behind it."""


@dataclass(frozen=True, slots=True)
class CacheView:
    """Markers, prediction and warnings of a request."""

    markers: tuple[CacheMarker, ...]
    predicted: Usage
    warnings: tuple[str, ...]
    cause: str = ""
    """Why less is read than the request before left, by prediction."""
    lost: int = 0
    """Raw counts of what is lost so."""
    by: str = ""
    """`provider` where its documents predict, `profile` where what was seen of the model does."""
    changed: CacheChange | None = None
    """None where no bytes changed."""


@dataclass(frozen=True, slots=True)
class VerdictView:
    """The cache as predicted against the cache as reported; tokens are the provider's."""

    outcome: str = ""
    """`agrees`, `shortfall`, `surplus`, `unpredicted`, `unreported`; empty until answered."""
    expected_read: int | None = None
    reported_read: int | None = None
    expected_write: int | None = None
    reported_write: int | None = None
    basis: str = ""
    cause: str = ""
    provider_reason: str = ""
    provider_missed: int | None = None
    disagreement: bool = False


@dataclass(frozen=True, slots=True)
class RequestDetail:
    """Everything stored about one request."""

    id: UUID
    session_id: UUID
    run_id: UUID
    number: int
    run_number: int
    step: int
    content_sequence: int
    act_sequence: int
    epoch: int
    engine: str
    provider: str
    model: str
    inputs: dict[str, Any]
    manifest: Manifest
    budget: Budget
    cache: CacheView
    request_sha256: str
    prefix_sha256: str
    wire_prefix_sha256: str
    total_tokens: int
    body_bytes: int
    status: str
    usage: Usage
    usage_stored: dict[str, Any]
    verdict: VerdictView
    error: dict[str, Any]
    reconstructed: bool
    build_ms: float
    created_at: datetime
    answered_at: datetime | None
    leg: int | None = None
    """The fallback leg that answered, whose model is then the one above; None for the session's own."""
    built_for: tuple[str, str] = ("", "")
    """Provider and model that the request's own body is for."""

    @property
    def label(self) -> str:
        """`run.step`, as people name it."""
        return f"{self.run_number}.{self.step}"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The request before or after, inside the session."""

    id: UUID
    label: str
    prefix_sha256: str
    epoch: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Requests around one, and since when its prefix has been the same."""

    previous: Neighbour | None
    next: Neighbour | None
    same_prefix_since: str
    """Label of the first request of the session with this prefix hash."""
    prefix_is_pinned: bool | None
    """Whether the prefix hash is the plan's; None when the plan is missing."""


def request_detail(tenant_id: UUID, request_id: UUID) -> RequestDetail | None:
    """The request, or None when this tenant has no such request. One query."""
    row = RequestRow.objects.filter(tenant_id=tenant_id, id=request_id).first()
    if row is None:
        return None
    return RequestDetail(
        id=row.id,
        session_id=row.session_id,
        run_id=row.run_id,
        number=row.number,
        run_number=row.run_number,
        step=row.step,
        content_sequence=row.content_sequence,
        act_sequence=row.act_sequence,
        epoch=row.epoch,
        engine=row.engine,
        provider=row.provider,
        model=row.model,
        inputs=row.inputs,
        manifest=Manifest.model_validate(row.manifest),
        budget=Budget.model_validate(row.budget),
        cache=_cache(row.cache),
        request_sha256=row.request_sha256,
        prefix_sha256=row.prefix_sha256,
        wire_prefix_sha256=row.wire_prefix_sha256,
        total_tokens=row.total_tokens,
        body_bytes=row.body_bytes,
        status=row.status,
        usage=usage_of(row.usage),
        usage_stored=row.usage,
        verdict=_verdict(row.verdict),
        error=row.error,
        reconstructed=row.reconstructed,
        build_ms=row.build_ms,
        created_at=row.created_at,
        answered_at=row.answered_at,
        leg=row.verdict.get("leg"),
        built_for=(
            row.verdict.get("own_provider", row.provider),
            row.verdict.get("own_model", row.model),
        ),
    )


@dataclass(frozen=True, slots=True)
class BuiltManifest:
    """What a request holds and why, without the rest of it."""

    id: UUID
    label: str
    created_at: datetime
    manifest: Manifest


def manifests_since(
    tenant_id: UUID, session_id: UUID, sequence: int, *, most: int
) -> tuple[BuiltManifest, ...]:
    """The newest requests of a session that saw an event, newest first. One query."""
    rows = RequestRow.objects.filter(
        tenant_id=tenant_id, session_id=session_id, content_sequence__gte=sequence
    ).exclude(request_sha256="")
    chosen = rows.order_by("-number").values("id", "run_number", "step", "manifest", "created_at")
    return tuple(
        BuiltManifest(
            row["id"],
            f"{row['run_number']}.{row['step']}",
            row["created_at"],
            Manifest.model_validate(row["manifest"]),
        )
        for row in chosen[:most]
    )


def neighbours(tenant_id: UUID, request: RequestDetail) -> Neighbours:
    """Previous and next request, and the prefix's history. Three queries."""
    rows = RequestRow.objects.filter(tenant_id=tenant_id, session_id=request.session_id)
    around = rows.filter(number__in=(request.number - 1, request.number + 1)).values(
        "id", "number", "run_number", "step", "prefix_sha256", "epoch", "total_tokens"
    )
    near = {row["number"]: row for row in around}
    first = (
        rows.filter(prefix_sha256=request.prefix_sha256, number__lte=request.number)
        .order_by("number")
        .values_list("run_number", "step")
        .first()
    )
    pinned = (
        PlanRow.objects.filter(
            tenant_id=tenant_id, session_id=request.session_id, epoch=request.epoch
        )
        .values_list("prefix_sha256", flat=True)
        .first()
    )
    return Neighbours(
        _neighbour(near.get(request.number - 1)),
        _neighbour(near.get(request.number + 1)),
        f"{first[0]}.{first[1]}" if first else request.label,
        None if pinned is None else pinned == request.prefix_sha256,
    )


def _neighbour(row: Mapping[str, Any] | None) -> Neighbour | None:
    if row is None:
        return None
    return Neighbour(
        row["id"],
        f"{row['run_number']}.{row['step']}",
        row["prefix_sha256"],
        row["epoch"],
        row["total_tokens"],
    )


def _cache(stored: dict[str, Any]) -> CacheView:
    predicted = stored.get("predicted") or {}
    foreseen = foreseen_of(predicted)
    return CacheView(
        markers=tuple(
            CacheMarker(marker["name"], marker["ttl"], marker.get("after_fragment"))
            for marker in stored.get("markers", ())
        ),
        predicted=Usage(foreseen.get("fresh"), foreseen.get("read"), foreseen.get("write")),
        warnings=tuple(stored.get("warnings", ())),
        cause=predicted.get("cause", ""),
        lost=predicted.get("lost", 0),
        by=predicted.get("by", ""),
        changed=_change(stored.get("changed")),
    )


def foreseen_of(predicted: Mapping[str, Any]) -> Mapping[str, Any]:
    """The figures of a stored prediction; none where its noughts say that nothing was predicted."""
    return {} if predicted.get("why") in UNPREDICTED else predicted


def _change(stored: Mapping[str, Any] | None) -> CacheChange | None:
    if not stored:
        return None
    prefix, segment = stored["wire_prefix_sha256"], stored["segment"]
    return CacheChange(
        stored["part"],
        (prefix["before"], prefix["after"]),
        segment["fragment"] if segment else None,
        (segment["before"], segment["after"]) if segment else ("", ""),
        exact=bool(segment and segment.get("exact")),
    )


def _verdict(stored: Mapping[str, Any]) -> VerdictView:
    return VerdictView(
        outcome=stored.get("class", ""),
        expected_read=stored.get("expected_read"),
        reported_read=stored.get("reported_read"),
        expected_write=stored.get("expected_write"),
        reported_write=stored.get("reported_write"),
        basis=stored.get("basis", ""),
        cause=stored.get("cause", ""),
        provider_reason=stored.get("provider_reason", ""),
        provider_missed=stored.get("provider_missed"),
        disagreement=bool(stored.get("disagreement")),
    )
