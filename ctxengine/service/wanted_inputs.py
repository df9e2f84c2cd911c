"""What a step is asked to be built from, before anything is allocated (design 6)."""

from __future__ import annotations

from datetime import datetime

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Memory, StepInputs
from ctxengine.engine.plan.plan import BUILDER_VERSION, Plan
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.clock import local_time
from ctxengine.service.specs import Assemble, MemoryLine


def given_memory(spec: Assemble) -> Memory:
    """The lines of row 13 that the caller brings, best first."""
    return Memory(*(_lines(part) for part in (spec.knowledge, spec.recall, spec.corrections)))


def _lines(lines: tuple[MemoryLine, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((line.id, line.text) for line in lines)


def wanted_inputs(
    session: SessionRow,
    run: RunRow,
    plan: Plan,
    spec: Assemble,
    content_head: EventSeq,
    head: EventSeq,
    now: datetime,
) -> StepInputs:
    """The step's inputs as far as they are known from its run, its plan and the call.

    Args:
        content_head: newest content event.
        head: newest event.
        now: the moment of the call, for runs that state none.
    """
    settings = run.settings
    moment = spec.now
    if moment is None and settings.get("now"):
        moment = datetime.fromisoformat(settings["now"])
    zone = spec.timezone or settings.get("timezone", "")
    return StepInputs(
        head=head,
        content_head=content_head,
        boundary=run.seed_event_sequence or 1,
        epoch=plan.epoch,
        engine=session.engine,
        builder=BUILDER_VERSION,
        renderer=plan.renderer,
        counter=plan.counter,
        policy=plan.policy.label,
        framing=plan.framing_version,
        factor_millionths=settings.get("factor_millionths", 1_000_000),
        now=local_time(moment or now, zone),
        timezone=zone,
        principal=session.principal,
        scopes=tuple(settings.get("scopes", ())),
        surface=settings.get("surface", ""),
        opaque_tokens=settings.get("opaque_tokens", 0),
        history_ttl=session.settings.get("history_ttl", "5m"),
    )
