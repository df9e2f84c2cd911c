"""A foreign session as one of ours: its log, plan, runs and the request at each model call (design 7.17)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from ctxengine.engine.budget.demand import Floors
from ctxengine.engine.build import BuildOptions, build
from ctxengine.engine.cache.session_key import session_key
from ctxengine.engine.derive import Derivation
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.importers.transcript import Entry, EntryType, ForeignSession
from ctxengine.engine.memo import BuildMemo
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
from ctxengine.ledger.models import RequestRow, RunRow
from ctxengine.service.crypto import new_nonce_key, new_salt
from ctxengine.service.drafts import content_draft
from ctxengine.service.imported_session import (
    imported_event,
    imported_plan,
    imported_session_row,
)
from ctxengine.service.imports.complete import body_bytes
from ctxengine.service.imports.import_log import ImportLog
from ctxengine.service.imports.made import Part, Reconstructed
from ctxengine.service.imports.outline import (
    Outline,
    OutlinedRow,
    Outlines,
    outlined_draft,
    outlined_row,
    shared_inputs,
)
from ctxengine.service.original import iso_of, moment_of, usage_of_original
from ctxengine.service.plans import plan_draft, plan_row
from ctxengine.service.rebuild import rendered_under
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
_PART_ENTRIES, _PART_BYTES = 2_000, 8 << 20
"""What is handed over at once: so much that its writing is worth a change of hands, so little that it fits anywhere."""
_BUILD = BuildOptions(validate=False, with_body=False)


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
        take: Callable[[Part], None] | None = None,
        outlined_from: int | None = None,
    ) -> None:
        """Resolve the session's plan; nothing is written anywhere.

        Args:
            take: is given what was made part by part, the last part without its log's end; None keeps all.
            outlined_from: answers from which requests are outlined; None: `OUTLINED_FROM`.
        """
        self._take = take
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
        self.log = ImportLog(
            str(tenant_id), str(session_id), salt=new_salt, body_id=lambda _: str(new_id())
        )
        plan = imported_plan(foreign, provider, self.counter, self.renderer, nonce_key)
        self.facts = SessionFacts(
            plan, nonce_key, session_key(str(tenant_id), str(session_id)), imported=True
        )
        self.derivation = Derivation(self.counter, foreign_as_pointer=True)
        self.memo = BuildMemo()
        self._shared = shared_inputs(plan)
        self._total = fixed_frame(plan, self._shared.factor_millionths).total
        self._floors = Floors()
        """Those in force: they rise with the yields of a request that is built."""
        self._outlines: Outlines | None = None
        answers = sum(entry.type is EntryType.ASSISTANT for entry in foreign.entries)
        if answers >= (OUTLINED_FROM if outlined_from is None else outlined_from):
            self._outlines = Outlines(
                self.log, self.facts, self._shared, self.memo.counter(self.counter)
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
            if self._is_a_part(place):
                self._hand_over()
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
        wanted = self._shared.model_copy(
            update={
                "head": head.sequence,
                "content_head": head.content_sequence,
                "boundary": run.seed_event_sequence or 1,
                "now": iso_of(self._last_at or entry.at),
            }
        )
        floors = self._floors
        if self._outlines is not None:
            outline = self._outlines.outline(wanted, floors)
            if outline is not None:
                self._keep_outline(run, entry, outline)
                return
        self._rebuild(run, entry, wanted, floors)

    def _rebuild(self, run: RunRow, entry: Entry, wanted: StepInputs, floors: Floors) -> None:
        """Build the request of a step and write down what that decides."""
        plan = self.facts.plan
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
        if prepared.allocation.raises:
            self._floors = floors_of(self.log.newest_yields(), self._total)
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
        row.body_bytes = body_bytes(built)
        row.status, row.usage = "answered", usage_of_original(entry)
        session.pressure_count += prepared.allocation.under_pressure
        self._keep(row)
        self._keep_digests(built)
        if prepared.inputs.cut > self._cut:
            # A cut only moves on: what stands before it is in no later request.
            self._cut = prepared.inputs.cut
            self.log.let_go(EventSeq(self._cut))

    def _keep_outline(self, run: RunRow, entry: Entry, outline: Outline) -> None:
        """Write down a request that is rebuilt later; its event goes in with the answer."""
        plan, session = self.facts.plan, self.out.session
        run.steps += 1
        row = outlined_row(
            outline,
            plan,
            session,
            run,
            request_id=new_id(),
            usage=usage_of_original(entry),
            at=moment_of(self._last_at or entry.at) or self.now,
        )
        self._started = [outlined_draft(row)]
        self.out.outlined += 1
        self._keep(row)

    def _keep(self, row: RequestRow | OutlinedRow) -> None:
        session = self.out.session
        session.requests += 1
        session.peak_tokens = max(session.peak_tokens, row.total_tokens)
        self._answering = row
        self.out.requests.append(row)

    def _is_a_part(self, place: int) -> bool:
        """Whether enough has come together to be handed over."""
        many = place % _PART_ENTRIES == _PART_ENTRIES - 1
        return many or self.log.waiting_bytes >= _PART_BYTES

    def _hand_over(self) -> None:
        if self._take is not None:
            requests, self.out.requests = self.out.requests, []
            self._take(Part(self.out.session.id, self.log.hand_over(EventSeq(self._cut)), requests))

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
        head, session = self.log.head(), self.out.session
        session.last_sequence, session.last_hash = head.sequence, head.hash
        session.content_sequence, session.act_sequence = head.content_sequence, head.act_sequence
        session.items, session.units, session.turns = head.items, head.units, head.turns
        session.tokens, session.pointer_tokens = head.tokens, head.pointer_tokens
        session.result_tokens = head.result_tokens
        session.active_at = moment_of(self._last_at) or self.now
        return self.out
