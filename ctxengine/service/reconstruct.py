"""A foreign session as one of ours: its log, plan, runs and the request at each model call (design 7.17)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from ctxengine.engine.build import BuildOptions, build
from ctxengine.engine.cache.session_key import session_key
from ctxengine.engine.derive import Derivation
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.importers.transcript import Entry, EntryType, ForeignSession
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.ports import OpenCall, TokenCounter
from ctxengine.engine.request import CheckpointInput, ModelRequest
from ctxengine.engine.step import (
    Memory,
    SessionFacts,
    StepInputs,
    fixed_frame,
    floors_of,
    prepare,
)
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.wire.base import WireRenderer
from ctxengine.ledger.models import PlanRow, RequestRow, RunRow, SessionRow
from ctxengine.service.crypto import new_nonce_key, new_salt
from ctxengine.service.drafts import content_draft
from ctxengine.service.imported_session import (
    imported_event,
    imported_plan,
    imported_session_row,
)
from ctxengine.service.original import iso_of, moment_of, usage_of_original
from ctxengine.service.plans import plan_draft, plan_row
from ctxengine.service.rebuild import rendered_under
from ctxengine.service.renderings import Key
from ctxengine.service.request_rows import request_row, step_drafts
from ctxengine.service.wiring import counter_of, new_id, renderer_of

_EVENT_OF = {
    EntryType.USER: EventType.USER_MESSAGE,
    EntryType.INPUT: EventType.INPUT_RECEIVED,
    EntryType.ASSISTANT: EventType.RESPONSE_COMPLETED,
    EntryType.RESULT: EventType.TOOL_RESULT,
    EntryType.SUMMARY: EventType.SUMMARY_IMPORTED,
}
_SOURCE_OF = {
    EntryType.USER: "user",
    EntryType.INPUT: "transcript:note",
    EntryType.ASSISTANT: "model",
    EntryType.SUMMARY: "summary:foreign",
}
OUTLINED_FROM = 250
"""Answers in a session from which its requests are outlined and rebuilt later; fewer are rebuilt on the spot."""
_REQUESTS_HELD = 100
"""Rows of requests that wait to be written together: each is larger than the message it asked for."""
_BUILD = BuildOptions(validate=False, with_body=False)


@dataclass(slots=True)
class Reconstructed:
    """Rows ready to be written."""

    session: SessionRow
    plan: PlanRow
    log: MemoryLog
    runs: list[RunRow] = field(default_factory=list)
    requests: list[RequestRow | OutlinedRow] = field(default_factory=list)
    """Those that nobody took over yet."""
    outlined: int = 0
    """Requests that are not rebuilt yet."""
    run_places: list[int] = field(default_factory=list)
    """Index of the entry that opened each run."""
    digests: dict[Key, str] = field(default_factory=dict)
    """Segment digests of the units that the requests hold."""
    kept_items: int = 0
    """Ledger items that came from the file."""


class Reconstruction:
    """Walks a foreign session's entries in order and keeps the ledger's own books."""

    def __init__(
        self,
        tenant_id: UUID,
        foreign: ForeignSession,
        *,
        file_sha256: str,
        format: str,
        now: datetime,
        parent: UUID | None = None,
        take_requests: Callable[[list[RequestRow | OutlinedRow]], None] | None = None,
        outlined_from: int = OUTLINED_FROM,
    ) -> None:
        """Resolve the session's plan; nothing is written anywhere.

        Args:
            take_requests: is given rows of requests as they come, some at a time; None keeps all.
            outlined_from: answers from which requests are outlined.
        """
        self._take_requests = take_requests
        self._answering: RequestRow | OutlinedRow | None = None
        """The newest request."""
        self._started: list[EventDraft] = []
        """The event of an outlined request, which is appended with the answer to it."""
        self._cut = 0
        self.foreign = foreign
        self.now = now
        provider = foreign.provider
        self.counter: TokenCounter = counter_of(provider, foreign.model)
        self.renderer: WireRenderer = renderer_of(provider)
        session_id, nonce_key = new_id(), new_nonce_key()
        self.log = MemoryLog(
            str(tenant_id), str(session_id), salt=new_salt, body_id=lambda _: str(new_id())
        )
        plan = imported_plan(foreign, provider, self.counter, self.renderer, nonce_key)
        self.facts = SessionFacts(
            plan, nonce_key, session_key(str(tenant_id), str(session_id)), imported=True
        )
        self.derivation = Derivation(self.counter, foreign_as_pointer=True)
        self.memo = BuildMemo()
        self._outlines: Outlines | None = None
        if sum(entry.type is EntryType.ASSISTANT for entry in foreign.entries) >= outlined_from:
            self._outlines = Outlines(
                self.log, self.facts, self._inputs(), self.memo.counter(self.counter)
            )
        batch = self.log.append(
            [imported_event(foreign, file_sha256, format, parent), plan_draft(plan)],
            expected=EventSeq(0),
            at=now,
        )
        self.out = Reconstructed(
            session=imported_session_row(
                tenant_id, session_id, foreign, plan, nonce_key, file_sha256, format, now
            ),
            plan=plan_row(
                plan,
                tenant_id=tenant_id,
                session_id=session_id,
                sequence=EventSeq(2),
                batch=batch,
                reasons=(),
                at=now,
            ),
            log=self.log,
        )
        self._sequence_of: dict[int, EventSeq] = {}
        self._last_at: str | None = None

    def run(self, progress: Callable[[int], None] | None = None) -> Reconstructed:
        """Append every entry, opening runs and rebuilding requests on the way; entries are let go of as they are taken."""
        waiting = self.foreign.entries[::-1]
        self.foreign.entries.clear()
        for place in range(len(waiting)):
            entry = waiting.pop()
            if entry.type is EntryType.USER or not self.out.runs:
                self._open_run(place, entry)
            if entry.type is EntryType.ASSISTANT:
                self._request(entry)
            self._append(place, entry)
            self._last_at = entry.at or self._last_at
            if progress is not None:
                progress(place + 1)
        self._close_run()
        return self._sealed()

    def _open_run(self, place: int, entry: Entry) -> None:
        self._close_run()
        self.out.run_places.append(place)
        session = self.out.session
        session.runs += 1
        if self._outlines is not None:
            self._outlines.run_opened()
        self.out.runs.append(
            RunRow(
                tenant_id=session.tenant_id,
                id=new_id(),
                session_id=session.id,
                number=session.runs,
                seed_event_sequence=self.log.head().sequence + 1,
                settings={"imported": True},
                started_at=moment_of(entry.at) or self.now,
            )
        )

    def _close_run(self) -> None:
        if not self.out.runs or self.out.runs[-1].state == "ended":
            return
        run = self.out.runs[-1]
        interrupted = bool(self.log.open_calls()) or self._last_is_result()
        run.state, run.outcome = "ended", "interrupted" if interrupted else "completed"
        run.ended_at = moment_of(self._last_at) or self.now
        ended = EventDraft(
            type=EventType.RUN_ENDED,
            trust=Trust.PLATFORM,
            run=str(run.id),
            payload={"outcome": run.outcome, "opaque_dropped": 0},
        )
        self.log.append([ended], expected=None, at=self.now)

    def _last_is_result(self) -> bool:
        head = self.log.head()
        if not head.content_sequence:
            return False
        (event,) = self.log.events(after=EventSeq(head.content_sequence - 1), limit=1)
        return event.type is EventType.TOOL_RESULT

    def _append(self, place: int, entry: Entry) -> None:
        run = self.out.runs[-1]
        started, self._started = self._started, []
        sequence = EventSeq(self.log.head().sequence + len(started) + 1)
        call = self._call(entry)
        draft = content_draft(
            self.log,
            type=_EVENT_OF[entry.type],
            format=entry.format,
            raw=entry.body,
            trust=entry.trust,
            sequence=sequence,
            derivation=self.derivation,
            run=str(run.id),
            source=_SOURCE_OF.get(entry.type) or f"tool:{call.name if call else entry.name or ''}",
            payload=self._payload(entry),
            answers=call,
            is_error=entry.is_error,
        )
        batch = self.log.append([*started, draft], expected=None, at=self.now)
        if self._outlines is not None and batch.items:
            self._outlines.took_in(batch.items)
        self._sequence_of[place] = sequence
        if not entry.synthetic:
            self.out.kept_items += len(batch.items)

    def _call(self, entry: Entry) -> OpenCall | None:
        if entry.type is not EntryType.RESULT or entry.call_ref is None:
            return None
        sequence = self._sequence_of[entry.call_ref[0]]
        return next(
            call
            for call in self.log.open_calls()
            if (call.sequence, call.ordinal) == (sequence, entry.call_ref[1])
        )

    def _payload(self, entry: Entry) -> dict[str, Any]:
        payload: dict[str, Any] = {}
        if entry.at:
            payload["at"] = entry.at
        if entry.synthetic:
            payload["synthetic"] = True
        if entry.type is EntryType.USER:
            payload["run_number"] = self.out.session.runs
        if entry.type is EntryType.ASSISTANT:
            payload |= {
                "stop_reason": model_view(entry.stop_reason or ""),
                "response_model": model_view(entry.model or ""),
                "request": str(self._answering.id)
                if self._answering is not None and self._answers(self._answering)
                else None,
            }
        if entry.extra:
            payload["extra"] = model_view(entry.extra)[:4000]
        return payload

    def _answers(self, request: RequestRow | OutlinedRow) -> bool:
        return request.content_sequence == self.log.head().content_sequence

    def _request(self, entry: Entry) -> None:
        """The request that this answer replied to; none where nothing stood before the answer."""
        run, head = self.out.runs[-1], self.log.head()
        if head.content_sequence == 0 or self.log.open_calls():
            return
        plan = self.facts.plan
        wanted = self._inputs().model_copy(
            update={
                "head": head.sequence,
                "content_head": head.content_sequence,
                "boundary": run.seed_event_sequence or 1,
                "now": iso_of(self._last_at or entry.at),
            }
        )
        floors = floors_of(self.log.newest_yields(), self._total)
        if self._outlines is not None and self._outline(run, entry, wanted, floors):
            return
        counter = self.memo.counter(self.counter)
        try:
            prepared = prepare(
                self.log, self.facts, wanted, memory=Memory(), floors=floors, counter=counter
            )
        except BudgetExceeded:
            # The file's own request was answered, so our conservative count is what does not fit.
            return
        built = build(
            prepared.run,
            CheckpointInput(),
            plan,
            renderer=self.renderer,
            memo=self.memo,
            options=_BUILD,
        )
        run.steps += 1
        request_id = new_id()
        self.log.append(
            step_drafts(
                prepared,
                built,
                request_id=request_id,
                step=run.steps,
                model=plan.model,
                run=str(run.id),
                reconstructed=True,
            ),
            expected=None,
            at=self.now,
        )
        session = self.out.session
        row = request_row(
            session=session,
            run=run,
            request_id=request_id,
            step=run.steps,
            inputs=prepared.inputs,
            prepared=prepared,
            built=built,
            at=moment_of(self._last_at or entry.at) or self.now,
            build_ms=0,
            reconstructed=True,
        )
        row.body_bytes = sum(stretch.totals.bytes for stretch in built.stretches)
        row.status, row.usage = "answered", usage_of_original(entry)
        session.requests += 1
        session.peak_tokens = max(session.peak_tokens, row.total_tokens)
        session.pressure_count += prepared.allocation.under_pressure
        self._answering = row
        self.out.requests.append(row)
        if len(self.out.requests) >= _REQUESTS_HELD:
            self._hand_over()
        self._keep_digests(built)
        if prepared.inputs.cut > self._cut:
            # A cut only moves on: what stands before it is in no later request.
            self._cut = prepared.inputs.cut
            self.log.let_go(EventSeq(self._cut))

    def _inputs(self) -> StepInputs:
        """What the inputs of all requests share."""
        plan = self.facts.plan
        return StepInputs(
            head=0,
            content_head=0,
            boundary=0,
            epoch=1,
            engine=plan.engine,
            builder=plan.builder,
            renderer=plan.renderer,
            counter=plan.counter,
            policy=plan.policy.label,
            framing=plan.framing_version,
        )

    def _hand_over(self) -> None:
        if self._take_requests is not None:
            self._take_requests(self.out.requests)
            self.out.requests = []

    def _keep_digests(self, built: ModelRequest) -> None:
        """Take in the digests of units that this request is the first to hold in their form."""
        under, known = rendered_under(built.plan), self.out.digests
        for stretch in built.stretches:
            for unit, digest in zip(
                reversed(stretch.units), reversed(stretch.digests), strict=False
            ):
                key = (under, unit.sequence, stretch.form)
                if key in known:
                    # A stretch only grows at its end: what stands before a known unit is known.
                    break
                known[key] = digest

    def _sealed(self) -> Reconstructed:
        self._hand_over()
        head, session = self.log.head(), self.out.session
        session.last_sequence, session.last_hash = head.sequence, head.hash
        session.content_sequence, session.act_sequence = head.content_sequence, head.act_sequence
        session.items, session.units, session.turns = head.items, head.units, head.turns
        session.tokens, session.pointer_tokens = head.tokens, head.pointer_tokens
        session.result_tokens = head.result_tokens
        session.active_at = moment_of(self._last_at) or self.now
        return self.out
