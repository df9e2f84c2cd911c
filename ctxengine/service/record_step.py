"""Writing a built step down: its events, its request and what they change, in one transaction (design 4)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from ctxengine.engine.cache.trail import Trail
from ctxengine.engine.events import EventDraft
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import Batch
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.sent_digests import digests_as_rendered
from ctxengine.engine.step import Memory, Prepared, StepInputs
from ctxengine.ledger.inserts import Statement, request_written
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.ledger.warm import WarmLog
from ctxengine.service.bound_reasoning import counted, drop_reasoning, reasoning_at_stake
from ctxengine.service.cache_use import cache_of
from ctxengine.service.compactors import naming_summaries, packets_of
from ctxengine.service.fresh_blocks import sent_draft
from ctxengine.service.left_before import LeftBefore
from ctxengine.service.legs.leg_bodies import BuiltLeg
from ctxengine.service.memory_lines import memory_draft
from ctxengine.service.renderings import new_renderings
from ctxengine.service.request_rows import request_row, step_drafts
from ctxengine.service.snapshots import snapshot_draft
from ctxengine.service.specs import Actor
from ctxengine.service.warm import Warmth
from ctxengine.service.weigh import prices_of, weighed, with_verdicts
from ctxengine.service.wiring import new_id, renderer_of


def record_step(
    actor: Actor,
    session: SessionRow,
    run: RunRow,
    log: WarmLog,
    prepared: Prepared,
    built: ModelRequest,
    memory: Memory,
    wanted: StepInputs,
    now: datetime,
    began: float,
    warmth: Warmth,
    left: LeftBefore,
    trail: Trail,
    declined: EventDraft | None,
    legs: Sequence[BuiltLeg],
) -> RequestRow:
    """The row of the step's request, written with its events.

    Args:
        wanted: the step's inputs as they were before anything was allocated.
        began: when work on the step began, by the performance counter (seconds).
        declined: the event that says why no model wrote the summary that was needed.

    Raises:
        StaleHead: something was appended since the step read its head.
    """
    request_id, step = new_id(), run.steps + 1
    if prepared.allocation.raises:
        prepared = weighed(prepared, built, prices_of(session))
    inputs = prepared.inputs
    if inputs.excluded:
        told = digests_as_rendered(prepared.run, renderer_of(session.provider))
        inputs = inputs.model_copy(update={"sent_digests": told})
    drafts = []
    read = memory_draft(memory, wanted.content_head, owner=session.principal)
    if read is not None:
        inputs = inputs.model_copy(update={"memory_event": wanted.head + 1})
        drafts.append(read)
    added = sent_draft(prepared, built, run=str(run.id), owner=session.principal)
    if added is not None:
        inputs = inputs.model_copy(update={"fresh_event": wanted.head + 1 + len(drafts)})
        drafts.append(added)
    used = snapshot_draft(log, built.plan, str(run.id))
    if used is not None:
        drafts.append(used)
    if declined is not None:
        drafts.append(declined)
    drafts += step_drafts(
        prepared,
        built,
        request_id=request_id,
        step=step,
        model=session.model,
        run=str(run.id),
        first=wanted.head + 1 + len(drafts),
        owner=session.principal,
    )
    if prepared.allocation.raises:
        drafts = with_verdicts(drafts, prepared, built, prices_of(session))
    given_up = bool(built.abandoned)
    lost = 0 if built.opaque_units else reasoning_at_stake(run, session.model, given_up=given_up)
    drafts = counted(drafts, lost)
    inputs = inputs.model_copy(
        update={"packets": packets_of(prepared, drafts, first=wanted.head + 1)}
    )
    named = naming_summaries(built.manifest, drafts, first=wanted.head + 1)
    built = replace(built, manifest=named)
    row = request_row(
        session=session,
        run=run,
        request_id=request_id,
        step=step,
        inputs=inputs,
        prepared=prepared,
        built=built,
        at=now,
        build_ms=(time.perf_counter() - began) * 1000,
        cache=cache_of(session, built, now, run, left, trail),
    )
    with transaction.atomic():
        if lost:
            log.lock()
            drop_reasoning(run)
        pressed = int(prepared.allocation.under_pressure)
        sent = (built, *(leg.request for leg in legs))
        renderings = new_renderings(session, sent, inputs.marks, warmth)

        def written(batch: Batch) -> list[Statement | None]:
            # Nothing was appended since the session row was read, so its own count still holds.
            row.act_sequence = session.act_sequence = batch.head.act_sequence
            return request_written(row, pressed=pressed, renderings=renderings)

        expected, key = EventSeq(wanted.head), actor.idempotency_key
        batch = log.append(drafts, expected=expected, at=now, key=key, also=written)
    if prepared.compaction is not None:
        warmth.installed(batch, prepared.compaction.made)
    return row
