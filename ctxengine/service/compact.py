"""`POST sessions/{id}/compactions`: shrink carried history now, or merge what stands for it (design 5, 6 and 8)."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.budget.yields import Floors, Raise
from ctxengine.engine.cache.bound_reasoning import binds_reasoning
from ctxengine.engine.cache.cost import CostModel
from ctxengine.engine.compaction.compactor import Compactor, Outcome
from ctxengine.engine.compaction.net_cost import NetCost, net_cost
from ctxengine.engine.compaction.packet import CompactionResult, packet_of
from ctxengine.engine.compaction.soundness import REMEDY, Refusal
from ctxengine.engine.compaction.summarise import Range, read_source
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.history.suffix import largest_suffix, suffix_tokens
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import Head
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.standing import Standing, standing_of
from ctxengine.engine.step import fixed_frame, floors_of
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.access import plan_row_of, session_of, still_open_session
from ctxengine.service.audit import record_audit
from ctxengine.service.bound_reasoning import (
    counted,
    drop_reasoning,
    open_run,
    reasoning_at_stake,
)
from ctxengine.service.boundary.by_hand import compact_by_hand
from ctxengine.service.clock import utc_now
from ctxengine.service.compacted import Compacted
from ctxengine.service.compactors import (
    WORDS,
    MadeFor,
    compactor_of,
    outcome_drafts,
    refusal_draft,
    refusal_words,
)
from ctxengine.service.cost_model import cost_model_of
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, Compact, ServiceError
from ctxengine.service.summaries.ask import ask_by_hand, require_reachable
from ctxengine.service.summaries.wanted import WantedSummary, wanted_raises
from ctxengine.service.wiring import log_of, plan_from
from ctxengine.service.working_set.compact_now import compact_working_set


def compact(*, actor: Actor, session_id: UUID, spec: Compact) -> Compacted:
    """Compact now. Compacting an unchanged log writes nothing.

    Raises:
        ServiceError: 409 `depth_exceeded`, `no_progress` and the other reasons of `Refusal`, each with its remedy; 409
            `compaction_off` where the policy wants none; 409 `no_summariser` where no model can be called; 409
            `session_ended`; 404.
    """
    session = session_of(actor, session_id)
    if session.engine == "boundary":
        return compact_by_hand(actor=actor, session=session, spec=spec)
    if session.engine == "working_set":
        return redo_once(lambda: compact_working_set(actor=actor, session=session, spec=spec))
    return redo_once(lambda: _Pass(actor, session, spec).run())


class _Pass:
    """One compaction by hand."""

    def __init__(self, actor: Actor, session: SessionRow, spec: Compact) -> None:
        self._actor = actor
        self._session = session
        self._spec = spec
        self._log: PostgresLog = log_of(session)
        self._now: datetime = utc_now()
        self._head: Head = self._log.head()
        still_open_session(session)
        row = plan_row_of(session)
        self._plan: Plan = plan_from(self._log, row)
        self._prices: CostModel | None = cost_model_of(row)
        run = self._open = open_run(session)
        self._run = str(run.id) if run else None
        self._boundary = EventSeq(
            run.seed_event_sequence if run and run.seed_event_sequence else self._head.sequence + 1
        )
        self._factor = (run.settings if run else {}).get("factor_millionths", 1_000_000)
        self._frame = fixed_frame(self._plan, self._factor)
        self._standing: Standing = standing_of(self._log, plan_total=self._frame.total)
        self._floors: Floors = floors_of(
            self._log.newest_yields(), self._frame.total, self._standing.undone
        )
        self._first = EventSeq(max(1, self._floors.cut))
        self._dropped = 0
        self._compactor: Compactor = self._make()

    def _make(self) -> Compactor:
        compactor = compactor_of(
            self._log,
            self._plan,
            self._standing,
            below=self._head.content_sequence + 1,
            defer=self._by_model,
        )
        if compactor is None:
            raise ServiceError(
                "compaction_off", 409, "The session's policy wants no summaries (compaction: none)."
            )
        return compactor

    def run(self) -> Compacted:
        """Do it."""
        with refusing():
            return self._merge() if self._spec.merge else self._summarise()

    # --- one more summary ---

    def _summarise(self) -> Compacted:
        below = self._below()
        tokens = self._tokens(self._first, below)
        if below <= self._first or self._log.at(below).index <= self._log.at(self._first).index:
            return self._unchanged()
        wanted = Range(self._first, below, tokens)
        outcome = self._compactor.compact(
            wanted, self._before(self._first), self._standing.results, self._body_tokens()
        )
        if outcome.refused is not None:
            says = refusal_words(outcome.refused, outcome.packets)
            return self._refuse(outcome.refused, self._first, below - 1, tokens, says)
        if outcome.wanted is not None:
            return self._asked(wanted, self._raised(below))
        result = outcome.made[-1]
        verdict = self._verdict(result, below)
        if not verdict.pays and not self._spec.force:
            return self._skip(tokens, result, verdict)
        # A merge that the new summary made necessary is weighed for itself.
        merges = tuple(self._weighed(made) for made in outcome.made[:-1])
        outcome = outcome._replace(made=(*merges, result.model_copy(update={"verdict": verdict})))
        if self._spec.preview:
            return self._previewed(outcome.made[-1])
        return self._install(outcome, wanted)

    def _below(self) -> EventSeq:
        """Where history will start: behind what was named, else at the low-water mark."""
        if self._spec.through is None:
            room = max(0, self._frame.body)
            policy = self._plan.policy
            target = min(room, max(math.floor(room * policy.low_water), policy.history_floor))
            return largest_suffix(
                self._log,
                floor=self._first,
                boundary=self._boundary,
                tokens=target,
                pointer_floor=self._floors.pointer,
            ).sequence
        through = min(self._spec.through, self._boundary - 1, self._head.sequence)
        unit = self._log.unit_of_item(EventSeq(through))
        if unit is not None:
            through = max(through, unit.last_sequence)
        return EventSeq(min(through + 1, self._boundary))

    def _tokens(self, first: EventSeq, below: EventSeq) -> int:
        return suffix_tokens(
            self._log, cut=first, boundary=below, pointer_floor=self._floors.pointer
        )

    def _body_tokens(self) -> int:
        return max(0, self._frame.body)

    def _before(self, first: EventSeq) -> list[Any]:
        return [packet for packet in self._standing.packets if packet.through < first]

    def _verdict(self, result: CompactionResult, below: EventSeq) -> NetCost:
        behind = self._log.at(EventSeq(self._head.sequence + 1)).tokens - self._log.at(below).tokens
        return net_cost(
            saved_tokens=result.tokens_before - result.tokens_after,
            recached_tokens=result.tokens_after + max(0, behind),
            expected_steps=self._plan.policy.expected_steps,
            forced_by="operator" if self._spec.force else "",
            prices=self._prices,
            prompt_tokens=self._plan.prefix_tokens + result.tokens_after + max(0, behind),
        )

    def _install(self, outcome: Outcome, wanted: Range) -> Compacted:
        made_for, result = self._made_for(), outcome.made[-1]
        raised = self._raised(wanted.below)
        floor = EventDraft(
            type=EventType.YIELD_APPLIED,
            trust=Trust.PLATFORM,
            run=self._run,
            payload={
                "class": raised.budget_class.value,
                "floor_sequence": raised.floor,
                "model": made_for.model,
                "plan_total": made_for.plan_total,
                "policy": made_for.policy,
                "before": raised.before,
                "after": raised.after,
                "items": raised.items,
                "forced_by": self._actor.label,
            },
        )
        last = self._write(
            lambda first: [floor, *self._drafts(outcome, first + 1, [first])], result, wanted
        )
        return self._answer("compacted", last, result)

    def _raised(self, below: EventSeq) -> Raise:
        return Raise(
            BudgetClass.HISTORY,
            below,
            self._tokens(self._first, self._boundary),
            self._tokens(below, self._boundary),
            self._log.at(below).index - self._log.at(self._first).index,
            self._floors.cut,
        )

    # --- by a model ---

    @property
    def _by_model(self) -> bool:
        return self._spec.summariser == "model" and not self._spec.preview

    def _asked(self, wanted: Range, raised: Raise | None) -> Compacted:
        """The job that makes it, without a wait."""
        summary = WantedSummary(
            cause="hand",
            first=wanted.first,
            below=wanted.below,
            tokens=wanted.tokens,
            body_tokens=self._body_tokens(),
            cut=self._floors.cut,
            pointer=self._floors.pointer,
            epoch=self._session.epoch,
            factor_millionths=self._factor,
            raises=wanted_raises([raised] if raised else []),
            run=self._run,
            reason=self._spec.note or "by hand",
            forced=self._spec.force,
            merge=raised is None,
        )
        job = ask_by_hand(self._actor, self._session.id, self._plan, summary)
        return Compacted("queued", tokens_before=wanted.tokens, job=job)

    # --- merging ---

    def _merge(self) -> Compacted:
        fresh = [packet for packet in self._standing.packets if packet.depth == 1]
        if len(fresh) < 2:
            old = [packet for packet in self._standing.packets if packet.depth > 1]
            refusal = Refusal.DEPTH_EXCEEDED if old else Refusal.NOTHING_TO_COMPACT
            packets = old or fresh
            return self._refuse(
                refusal,
                packets[0].first if packets else 1,
                packets[-1].through if packets else 0,
                sum(packet.tokens for packet in packets),
            )
        if self._by_model:
            first, below = fresh[0].first, EventSeq(fresh[-1].through + 1)
            return self._asked(Range(first, below, sum(p.tokens for p in fresh)), None)
        result = self._compactor.merge(fresh, self._standing.results, self._body_tokens())
        if isinstance(result, Refusal):
            tokens = sum(packet.tokens for packet in fresh)
            return self._refuse(result, fresh[0].first, fresh[-1].through, tokens)
        verdict = self._verdict(result, EventSeq(result.replaced_through_sequence + 1))
        if not verdict.pays and not self._spec.force:
            return self._skip(result.tokens_before, result, verdict)
        result = result.model_copy(update={"verdict": verdict})
        if self._spec.preview:
            return self._previewed(result)
        outcome = Outcome((result,), (packet_of(result),))
        last = self._write(lambda first: self._drafts(outcome, first, []), result, None)
        return self._answer("merged", last, result)

    # --- both ---

    def _previewed(self, result: CompactionResult) -> Compacted:
        """What would be made; refused where a model was to make it that cannot be called."""
        if self._spec.summariser == "model":
            require_reachable(self._plan, result.tokens_before)
        return self._answer("previewed", None, result)

    def _weighed(self, result: CompactionResult) -> CompactionResult:
        below = EventSeq(result.replaced_through_sequence + 1)
        return result.model_copy(update={"verdict": self._verdict(result, below)})

    def _skip(self, tokens: int, result: CompactionResult, verdict: NetCost) -> Compacted:
        """Nothing is changed, since nothing forces what does not pay."""
        reason = Refusal.DOES_NOT_PAY.value
        return Compacted(
            "skipped", None, tokens, result.tokens_after, verdict=verdict, reason=reason
        )

    def _made_for(self) -> MadeFor:
        return MadeFor(
            self._frame.total, self._session.model, self._plan.policy.label, self._actor.label
        )

    def _drafts(self, outcome: Outcome, first: int, yields: list[int]) -> list[EventDraft]:
        return outcome_drafts(
            outcome,
            first=first,
            yields=yields,
            made_for=self._made_for(),
            run=self._run,
            owner=self._session.principal,
            reason=self._spec.note or "by hand",
        )

    def _write(
        self,
        drafts_at: Callable[[int], list[EventDraft]],
        result: CompactionResult,
        wanted: Range | None,
    ) -> int:
        """Install by compare-and-set on the source: what came in meanwhile stays, what was read must be unchanged."""
        with transaction.atomic():
            head = self._log.lock()
            if head.sequence != self._head.sequence:
                still_open_session(self._session)
                self._check_source(head, wanted, result)
            # Summaries stand before the open run, and so before its reasoning.
            if binds_reasoning(self._plan.model):
                self._dropped = drop_reasoning(self._open)
            drafts = counted(drafts_at(head.sequence + 1), self._dropped)
            self._log.append(
                drafts, expected=head.sequence, at=self._now, key=self._actor.idempotency_key
            )
            record_audit(
                actor=self._actor,
                action="history.compacted",
                target=str(self._session.id),
                reason=self._spec.note,
                before={"tokens": result.tokens_before},
                after={
                    "tokens": result.tokens_after,
                    "through": result.replaced_through_sequence,
                    "depth": result.depth,
                },
            )
        return head.sequence + len(drafts)

    def _check_source(self, head: Head, wanted: Range | None, result: CompactionResult) -> None:
        floors = floors_of(self._log.newest_yields(), self._frame.total, self._standing.undone)
        same = head.act_sequence == self._head.act_sequence and floors == self._floors
        if same and wanted is not None:
            again = read_source(
                self._log,
                wanted,
                self._compactor.surroundings,
                excluded=self._compactor.excluded,
            )
            same = again.digest == result.source_sha256
        if not same:
            raise ServiceError("stale_head", 409, WORDS[Refusal.SOURCE_CHANGED])

    def _answer(self, outcome: str, event: int | None, result: CompactionResult) -> Compacted:
        return Compacted(
            outcome,
            event,
            result.tokens_before,
            result.tokens_after,
            result.replaced_through_sequence,
            result.depth,
            result.verdict,
            reasoning_dropped=self._dropped or reasoning_at_stake(self._open, self._plan.model),
        )

    def _unchanged(self) -> Compacted:
        last = self._standing.packets[-1] if self._standing.packets else None
        if last is None:
            return Compacted("unchanged")
        return Compacted(
            "unchanged",
            last.sequence,
            last.tokens_before,
            last.tokens,
            last.through,
            last.depth,
        )

    def _refuse(
        self, refusal: Refusal, first: int, through: int, tokens: int, says: str = ""
    ) -> Compacted:
        """Write the refusal down once for this state of the log, then raise it."""
        draft = refusal_draft(
            self._log,
            refusal,
            first=first,
            through=through,
            tokens=tokens,
            content_head=self._head.content_sequence,
            forced_by=self._actor.label,
            run=self._run,
        )
        if draft is not None and not self._spec.preview:
            self._log.append([draft], expected=None, at=self._now, key=self._actor.idempotency_key)
        raise ServiceError(
            refusal.value, 409, says or WORDS[refusal], remedy=REMEDY[refusal], through=through
        )
