"""What drift guards said of the answer to one request (capacity spec 7)."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ctxengine.engine.events import EventType
from ctxengine.engine.guards.judgement import MEANINGS, Guard
from ctxengine.ledger.models import Event


@dataclass(frozen=True, slots=True)
class GuardVerdict:
    """One verdict with the figures it rests on."""

    sequence: int
    guard: str
    meaning: str
    verdict: str
    strike: int
    evidence: tuple[tuple[str, str], ...]
    """Name and figure, in words a person reads."""

    @property
    def stopped(self) -> bool:
        """Whether something followed from it."""
        return self.verdict in {"withheld", "repair", "closed"}


def verdicts_on(
    tenant_id: UUID, session_id: UUID, run_id: UUID, request_id: UUID
) -> tuple[GuardVerdict, ...]:
    """The verdicts on a request's answer, in the order they were made. One query where no guard spoke in the run, else two."""
    rows = list(
        Event.objects.filter(
            tenant_id=tenant_id,
            session_id=session_id,
            run_id=run_id,
            type=EventType.GUARD_JUDGED,
        ).order_by("sequence")
    )
    if not rows:
        return ()
    answer = (
        Event.objects.filter(
            tenant_id=tenant_id,
            session_id=session_id,
            run_id=run_id,
            type=EventType.RESPONSE_COMPLETED,
            payload__request=str(request_id),
        )
        .values_list("sequence", flat=True)
        .first()
    )
    return tuple(_verdict(row) for row in rows if row.payload["response"] == answer)


def _verdict(row: Event) -> GuardVerdict:
    told = row.payload
    return GuardVerdict(
        sequence=row.sequence,
        guard=told["guard"],
        meaning=MEANINGS[Guard(told["guard"])],
        verdict=told["verdict"],
        strike=told["strike"],
        evidence=tuple(
            (name.replace("_", " "), str(value)) for name, value in told["evidence"].items()
        ),
    )
