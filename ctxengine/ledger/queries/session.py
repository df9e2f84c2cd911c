"""One session: its head, its runs and the strip of its requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Q

from ctxengine.engine.derive import PREVIEW_CHARS
from ctxengine.engine.events import EventType
from ctxengine.engine.items import ItemKind
from ctxengine.ledger.models import Event, ItemRow, PlanRow, RequestRow, RunRow, SessionRow
from ctxengine.ledger.queries.sums import Bill, usage_sums
from ctxengine.ledger.queries.usage import Usage, usage_of


@dataclass(frozen=True, slots=True)
class SessionHead:
    """What stands at the top of every page of a session."""

    id: UUID
    title: str
    agent_name: str
    agent_version: str
    engine: str
    provider: str
    model: str
    principal: str
    occasion: str
    parent_run_id: UUID | None
    import_sha256: str
    import_format: str
    state: str
    counter: str
    last_sequence: int
    last_hash: str
    epoch: int
    items: int
    units: int
    runs: int
    requests: int
    tokens: int
    peak_tokens: int
    pressure_count: int
    created_at: datetime
    active_at: datetime


@dataclass(frozen=True, slots=True)
class StepLine:
    """One request of a run, as the run list shows it."""

    id: UUID
    label: str
    total_tokens: int
    epoch: int
    status: str
    usage: Usage
    yields: tuple[str, ...]
    """Classes whose yield step ran."""


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool and how often a run called it."""

    name: str
    calls: int


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run: what was asked, done and answered."""

    id: UUID
    number: int
    state: str
    outcome: str
    started_at: datetime
    ended_at: datetime | None
    seed_sequence: int | None
    asked: str
    called: tuple[CalledTool, ...]
    answered: str
    """Its beginning, as of `asked`; a text that goes on ends in an ellipsis."""
    answered_sequence: int | None
    steps: tuple[StepLine, ...]

    @property
    def peak_tokens(self) -> int:
        """Largest request of the run."""
        return max((step.total_tokens for step in self.steps), default=0)


@dataclass(frozen=True, slots=True)
class RunPage:
    """A window of runs, newest first."""

    runs: tuple[RunLine, ...]
    before: int | None
    """Run number to ask for next; None when the first run is shown."""


@dataclass(frozen=True, slots=True)
class StripColumn:
    """One request as a column of the strip; tokens by class of row."""

    id: UUID
    number: int
    label: str
    run_number: int
    epoch: int
    prefix_sha256: str
    content_sequence: int
    act_sequence: int
    prefix: int
    summary: int
    conversation: int
    results: int
    fresh: int
    input: int
    usable: int
    usage: Usage
    given_up: int
    """Tokens that yields took out right before this request."""

    @property
    def total(self) -> int:
        """All rows of the request."""
        return (
            self.prefix + self.summary + self.conversation + self.results + self.fresh + self.input
        )


@dataclass(frozen=True, slots=True)
class Act:
    """An event that changed what requests look like."""

    sequence: int
    type: str
    payload: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class Strip:
    """A window of a session's requests in order, with the acts that fall into it."""

    columns: tuple[StripColumn, ...]
    acts: tuple[Act, ...]
    first_number: int
    last_number: int
    total: int
    """Requests of the whole session."""


ACT_TYPES = (
    EventType.EPOCH_ROTATED,
    EventType.YIELD_APPLIED,
    EventType.BUDGET_PRESSURE,
    EventType.BUDGET_EXCEEDED,
    EventType.SUMMARY_IMPORTED,
    EventType.RESPONSE_FAILED,
    EventType.CALL_REFUSED,
    EventType.COMPACTED,
    EventType.COMPACTION_UNDONE,
    EventType.TOOL_REVOKED,
    EventType.TOOL_RESTORED,
    EventType.AUTHORITY_CHANGED,
    EventType.WINDOW_LEARNED,
)

HELPED_NOTHING = Q(type=EventType.BUDGET_PRESSURE, payload__fits=False)
"""Pressure that no request came of: the step stands under `context.budget.exceeded` alone."""

_HEAD = tuple(SessionHead.__dataclass_fields__)


def session_head(tenant_id: UUID, session_id: UUID) -> SessionHead | None:
    """The session, or None when this tenant has no such session. One query."""
    row = SessionRow.objects.filter(tenant_id=tenant_id, id=session_id).values(*_HEAD).first()
    return SessionHead(**row) if row else None


def child_sessions(tenant_id: UUID, session_id: UUID) -> tuple[tuple[UUID, str], ...]:
    """Ids and titles of the sessions that a run of this one started. One query."""
    runs = RunRow.objects.filter(tenant_id=tenant_id, session_id=session_id).values("id")
    rows = SessionRow.objects.filter(tenant_id=tenant_id, parent_run_id__in=runs)
    return tuple(rows.order_by("created_at", "id").values_list("id", "title")[:50])


def parent_session(tenant_id: UUID, run_id: UUID) -> tuple[UUID, int] | None:
    """Session id and number of the run that started a child session. One query."""
    return (
        RunRow.objects.filter(tenant_id=tenant_id, id=run_id)
        .values_list("session_id", "number")
        .first()
    )


def run_page(
    tenant_id: UUID, session_id: UUID, *, before: int | None = None, size: int = 20
) -> RunPage:
    """A window of runs with what they asked, called and answered. Five queries."""
    rows = RunRow.objects.filter(tenant_id=tenant_id, session_id=session_id)
    upper = None
    if before is not None:
        upper = rows.filter(number=before).values_list("seed_event_sequence", flat=True).first()
        rows = rows.filter(number__lt=before)
    found = list(rows.order_by("-number")[: size + 1])
    shown = found[:size]
    if not shown:
        return RunPage((), None)
    texts = _texts_of(tenant_id, session_id, shown, upper)
    steps = _steps_of(tenant_id, session_id, {run.id for run in shown})
    lines = tuple(
        RunLine(
            id=run.id,
            number=run.number,
            state=run.state,
            outcome=run.outcome,
            started_at=run.started_at,
            ended_at=run.ended_at,
            seed_sequence=run.seed_event_sequence,
            asked=texts.asked.get(run.seed_event_sequence or 0, ""),
            called=tuple(texts.called.get(run.id, ())),
            answered=texts.answered.get(run.id, ("", None))[0],
            answered_sequence=texts.answered.get(run.id, ("", None))[1],
            steps=tuple(steps.get(run.id, ())),
        )
        for run in shown
    )
    return RunPage(lines, shown[-1].number if len(found) > size else None)


def strip(
    tenant_id: UUID, session_id: UUID, *, total: int, start: int | None = None, size: int = 80
) -> Strip:
    """A window of columns from request number `start`, by default the newest. Two queries."""
    first = max(1, min(start if start is not None else total - size + 1, total))
    rows = (
        RequestRow.objects.filter(
            tenant_id=tenant_id, session_id=session_id, number__gte=first, number__lt=first + size
        )
        .order_by("number")
        .values(*_STRIP, "usage", "manifest__rows", "manifest__yields", "budget")
    )
    columns = tuple(_column(row) for row in rows)
    if not columns:
        return Strip((), (), first, first, total)
    low = columns[0].content_sequence if first > 1 else 0
    found = Event.objects.filter(
        tenant_id=tenant_id,
        session_id=session_id,
        type__in=ACT_TYPES,
        sequence__gt=low - 1,
        sequence__lte=max(max(c.content_sequence, c.act_sequence) for c in columns) + 4,
    )
    acts = found.exclude(HELPED_NOTHING).order_by("sequence")[:500]
    return Strip(
        columns,
        tuple(Act(act.sequence, act.type, act.payload, act.recorded_at) for act in acts),
        columns[0].number,
        columns[-1].number,
        total,
    )


def newest_acts(
    tenant_id: UUID, session_id: UUID, kind: EventType, *, size: int
) -> tuple[Act, ...]:
    """The newest events of one type, newest first. One query."""
    rows = Event.objects.filter(tenant_id=tenant_id, session_id=session_id, type=kind)
    found = rows.order_by("-sequence")[:size]
    return tuple(Act(act.sequence, act.type, act.payload, act.recorded_at) for act in found)


def bill(tenant_id: UUID, session_id: UUID) -> Bill:
    """What the provider reported for all requests of the session. One query."""
    return usage_sums(RequestRow.objects.filter(tenant_id=tenant_id, session_id=session_id))


def epoch_tokens(tenant_id: UUID, session_id: UUID) -> dict[int, int]:
    """Prefix tokens of each epoch. One query."""
    rows = PlanRow.objects.filter(tenant_id=tenant_id, session_id=session_id)
    return dict(rows.values_list("epoch", "prefix_tokens"))


@dataclass(frozen=True, slots=True)
class _Texts:
    asked: dict[int, str]
    called: dict[UUID, list[CalledTool]]
    answered: Mapping[UUID, tuple[str, int | None]]


def _texts_of(tenant_id: UUID, session_id: UUID, runs: list[RunRow], upper: int | None) -> _Texts:
    items = ItemRow.objects.filter(tenant_id=tenant_id, session_id=session_id)
    seeds = [run.seed_event_sequence for run in runs if run.seed_event_sequence is not None]
    # Bounding by sequence keeps this on the primary key, however long the session is.
    window = items.filter(run_id__in=[run.id for run in runs], sequence__gte=min(seeds, default=0))
    if upper is not None:
        window = window.filter(sequence__lt=upper)
    asked = {
        sequence: _beginning(text, length)
        for sequence, text, length in items.filter(sequence__in=seeds, ordinal=0).values_list(
            "sequence", "preview", "chars_len"
        )
    }
    called: dict[UUID, list[CalledTool]] = defaultdict(list)
    counted = (
        window.filter(kind=ItemKind.TOOL_CALL)
        .order_by()
        .values("run_id", "name")
        .annotate(calls=Count("sequence"), last=Max("sequence"))
        .order_by("-calls", "name")
    )
    for row in counted:
        if row["run_id"] is not None:
            called[row["run_id"]].append(CalledTool(row["name"], row["calls"]))
    answers = (
        window.filter(kind=ItemKind.ASSISTANT_MESSAGE)
        .order_by("run_id", "-sequence", "-ordinal")
        .distinct("run_id")
        .values_list("run_id", "preview", "chars_len", "sequence")
    )
    answered = {
        run: (_beginning(text, length), sequence)
        for run, text, length, sequence in answers
        if run is not None
    }
    return _Texts(asked, called, answered)


def _beginning(text: str, chars: int) -> str:
    """A preview that says so where its item has more characters than a preview takes."""
    return f"{text.rstrip()}…" if chars > PREVIEW_CHARS else text


def _steps_of(tenant_id: UUID, session_id: UUID, runs: set[UUID]) -> dict[UUID, list[StepLine]]:
    steps: dict[UUID, list[StepLine]] = defaultdict(list)
    rows = (
        RequestRow.objects.filter(tenant_id=tenant_id, session_id=session_id, run_id__in=runs)
        .order_by("number")
        .values(
            "id",
            "run_id",
            "run_number",
            "step",
            "total_tokens",
            "epoch",
            "status",
            "usage",
            "manifest__yields",
        )
    )
    for row in rows:
        steps[row["run_id"]].append(
            StepLine(
                id=row["id"],
                label=f"{row['run_number']}.{row['step']}",
                total_tokens=row["total_tokens"],
                epoch=row["epoch"],
                status=row["status"],
                usage=usage_of(row["usage"]),
                yields=ran_classes(row["manifest__yields"]),
            )
        )
    return steps


def ran_classes(yields: list[dict[str, Any]] | None) -> tuple[str, ...]:
    """Names of the classes whose yield step ran, from a manifest's stored steps."""
    return tuple(step["budget_class"] for step in yields or () if step["outcome"] == "ran")


_STRIP = (
    "id",
    "number",
    "run_number",
    "step",
    "epoch",
    "prefix_sha256",
    "content_sequence",
    "act_sequence",
)


def _column(row: dict[str, Any]) -> StripColumn:
    tokens = {entry["row"]: entry["tokens"] for entry in row["manifest__rows"] or ()}
    budget = row["budget"] or {}
    results = min(budget.get("tool_results", 0), tokens.get(10, 0))
    return StripColumn(
        id=row["id"],
        number=row["number"],
        label=f"{row['run_number']}.{row['step']}",
        run_number=row["run_number"],
        epoch=row["epoch"],
        prefix_sha256=row["prefix_sha256"],
        content_sequence=row["content_sequence"],
        act_sequence=row["act_sequence"],
        prefix=sum(tokens.get(number, 0) for number in range(1, 9)),
        summary=tokens.get(9, 0),
        conversation=tokens.get(10, 0) - results,
        results=results,
        fresh=sum(tokens.get(number, 0) for number in range(11, 15)),
        input=tokens.get(15, 0),
        usable=budget.get("usable", 0),
        usage=usage_of(row["usage"]),
        given_up=sum(
            max(0, step["tokens_before"] - step["tokens_after"])
            for step in row["manifest__yields"] or ()
            if step["outcome"] == "ran"
        ),
    )
