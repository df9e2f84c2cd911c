"""A foreign session as one of ours: its log, plan, runs and the request at each model call (design 7.17)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from ctxengine.engine.budget.demand import Floors
from ctxengine.engine.build import BuildOptions, build
from ctxengine.engine.cache.session_key import session_key
from ctxengine.engine.derive import Derivation
from ctxengine.engine.errors import BudgetExceeded, LayoutBreach
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.importers.transcript import Entry, EntryType, ForeignSession
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.log.records import Batch
from ctxengine.engine.manifest import YieldStep
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
from ctxengine.service.compactors import MadeFor
from ctxengine.service.crypto import new_nonce_key, new_salt
from ctxengine.service.drafts import content_draft
from ctxengine.service.imported_session import (
    imported_event,
    imported_plan,
    imported_session_row,
)
from ctxengine.service.imports.complete import body_bytes
from ctxengine.service.imports.fresh_ids import id_texts
from ctxengine.service.imports.import_log import Content, ImportLog
from ctxengine.service.imports.made import Part, Reconstructed
from ctxengine.service.imports.outline import (
    Outline,
    OutlinedRow,
    Outlines,
    StepPlace,
    outlined_payload,
    outlined_row,
    outlined_yields,
    shared_inputs,
)
from ctxengine.service.imports.plain import EVENT_OF, PlainItems, source_of
from ctxengine.service.original import iso_of, moment_of, usage_of_original
from ctxengine.service.plans import plan_draft, plan_row
from ctxengine.service.rebuild import rendered_under
from ctxengine.service.request_rows import request_row, step_drafts
from ctxengine.service.wiring import counter_of, new_id, renderer_of

_FORMATS = {format: format.value for format in ContentFormat}
OUTLINED_FROM = 250
"""Answers in a session from which its requests are outlined and rebuilt later; fewer are rebuilt on the spot."""
_PART_ENTRIES, _PART_BYTES = 1_000, 8 << 20
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
        self._started: OutlinedRow | None = None
        """An outlined request whose event is appended with the answer to it."""
        self._cut, self._run_id = 0, ""
        self.foreign = foreign
        self.now = now
        provider = foreign.provider
        self.counter: TokenCounter = counter_of(provider, model_view(foreign.model))
        self.renderer: WireRenderer = renderer_of(provider)
        session_id, nonce_key, ids = new_id(), new_nonce_key(), id_texts()
        self.log = ImportLog(
            str(tenant_id), str(session_id), salt=new_salt, body_id=lambda _: next(ids)
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
        self._items = PlainItems(self.log, self.counter)
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
                self._request(place, entry)
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
        run_id = new_id()
        self._run_id = str(run_id)
        self.out.runs.append(
            RunRow(
                tenant_id=session.tenant_id,
                id=run_id,
                session_id=session.id,
                number=session.runs,
                seed_event_sequence=self.log.sequence + 1,
                settings={"imported": True},
                started_at=moment_of(entry.at) or self.now,
            )
        )

    def _close_run(self) -> None:
        if not self.out.runs or self.out.runs[-1].state == "ended":
            return
        run = self.out.runs[-1]
        interrupted = self.log.any_open or self.log.newest_content is EventType.TOOL_RESULT
        run.state, run.outcome = "ended", "interrupted" if interrupted else "completed"
        run.ended_at = moment_of(self._last_at) or self.now
        if self._outlines is not None:
            payload = {"outcome": run.outcome, "opaque_dropped": 0}
            self.log.append_act(EventType.RUN_ENDED, self._run_id, payload, self.now)
            return
        ended = EventDraft(
            type=EventType.RUN_ENDED,
            trust=Trust.PLATFORM,
            run=str(run.id),
            payload={"outcome": run.outcome, "opaque_dropped": 0},
        )
        self.log.append([ended], expected=None, at=self.now)

    def _append(self, place: int, entry: Entry) -> None:
        call = self._call(entry)
        if self._outlines is not None:
            self._append_lines(place, entry, call, self._outlines)
            return
        run = self.out.runs[-1]
        sequence = EventSeq(self.log.sequence + 1)
        draft = content_draft(
            self.log,
            type=EVENT_OF[entry.type],
            format=entry.format,
            raw=entry.body,
            trust=entry.trust,
            sequence=sequence,
            derivation=self.derivation,
            run=str(run.id),
            source=source_of(entry, call),
            payload=self._payload(entry),
            answers=call,
            is_error=entry.is_error,
        )
        batch = self.log.append([draft], expected=None, at=self.now)
        self._took_in(place, entry, sequence, len(batch.items))

    def _append_lines(
        self, place: int, entry: Entry, call: OpenCall | None, outlines: Outlines
    ) -> None:
        """The same for a long session, where what is appended is written down at once."""
        run, type = self._run_id, EVENT_OF[entry.type]
        started, self._started = self._started, None
        if started is not None:
            self.log.append_act(EventType.REQUEST_STARTED, run, outlined_payload(started), self.now)
        sequence = EventSeq(self.log.sequence + 1)
        rows = self._items.rows(entry, type, sequence, source_of(entry, call), call)
        payload: dict[str, Any] = {"format": _FORMATS[entry.format], **self._payload(entry)}
        if call is not None:
            payload["answers"] = f"{call.sequence}.{call.ordinal}"
        if entry.is_error and type is EventType.TOOL_RESULT:
            payload["is_error"] = True
        self.log.append_content(
            Content(type, entry.format, entry.trust, run, entry.body, payload, rows, call), self.now
        )
        if rows:
            outlines.took_in(rows[0][1], rows[-1][1], call.sequence if call else sequence)
        self._took_in(place, entry, sequence, len(rows))

    def _took_in(self, place: int, entry: Entry, sequence: EventSeq, items: int) -> None:
        self._sequence_of[place] = sequence
        if not entry.synthetic:
            self.out.kept_items += items

    def _call(self, entry: Entry) -> OpenCall | None:
        if entry.type is not EntryType.RESULT or entry.call_ref is None:
            return None
        return self.log.open_call(self._sequence_of[entry.call_ref[0]], entry.call_ref[1])

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
        return request.content_sequence == self.log.content_sequence

    def _request(self, place: int, entry: Entry) -> None:
        """The request that this answer replied to; none where nothing stood before the answer, or where it does not fit."""
        run, log = self.out.runs[-1], self.log
        if log.content_sequence == 0 or log.any_open:
            return
        step = StepPlace(
            head=log.sequence,
            content_head=log.content_sequence,
            boundary=run.seed_event_sequence or 1,
            now=iso_of(self._last_at or entry.at),
        )
        try:
            self._make(run, entry, step)
        except BudgetExceeded:
            # The file's own request was answered, so our conservative count is what does not fit.
            self.out.unfit.append(place)

    def _make(self, run: RunRow, entry: Entry, step: StepPlace) -> None:
        """Outline the request of a step, or build it.

        Raises:
            BudgetExceeded: what never yields does not fit.
        """
        if self._outlines is not None and self._outlines.can_outline:
            outline = self._outlines.outline(step, self._floors)
            if outline is not None:
                self._keep_outline(run, entry, outline)
            else:
                self._outline_a_yield(run, entry, step, self._outlines)
            return
        self._rebuild(run, entry, self._shared.model_copy(update=step._asdict()))

    def _rebuild(self, run: RunRow, entry: Entry, wanted: StepInputs) -> None:
        """Build the request of a step and write down what that decides."""
        plan = self.facts.plan
        counter = self.memo.counter(self.counter)
        prepared = prepare(
            self.log, self.facts, wanted, memory=Memory(), floors=self._floors, counter=counter
        )
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
        drafts = step_drafts(
            prepared,
            built,
            request_id=request_id,
            step=run.steps,
            model=plan.model,
            run=str(run.id),
            reconstructed=True,
        )
        self._raise_floors(self.log.append(drafts, expected=None, at=self.now))
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

    def _outline_a_yield(
        self, run: RunRow, entry: Entry, place: StepPlace, outlines: Outlines
    ) -> None:
        """Raise the floors that a step needs, and outline its request under them."""
        allocation = outlines.allocation(place, self._floors)
        outline = outlines.outline(place, allocation.floors)
        if outline is None:
            problem = "does not fit under the floors that its own yields raise"
            raise LayoutBreach(f"The step behind event {place.content_head} {problem}.")
        row = self._keep_outline(run, entry, outline, allocation.yields)
        made_for = MadeFor(self._total, row.model, self._shared.policy, str(row.id))
        self.out.session.pressure_count += allocation.under_pressure
        drafts = outlined_yields(allocation, made_for, run=str(run.id))
        self._raise_floors(self.log.append(drafts, expected=None, at=self.now))
        self._cut = max(self._cut, allocation.floors.cut)

    def _raise_floors(self, batch: Batch) -> None:
        """Take in the yields that were just appended; a floor never falls, so those before them need no other look."""
        yields = [event for event in batch.events if event.type is EventType.YIELD_APPLIED]
        risen, known = floors_of(yields, self._total), self._floors
        self._floors = Floors(max(known.cut, risen.cut), max(known.pointer, risen.pointer))

    def _keep_outline(
        self, run: RunRow, entry: Entry, outline: Outline, yields: Sequence[YieldStep] = ()
    ) -> OutlinedRow:
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
            yields=yields,
        )
        self._started = row
        self.out.outlined += 1
        self._keep(row)
        return row

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
            self._take(Part(self.log.hand_over(EventSeq(self._cut)), requests))

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
