"""Pin a turn whole, fold it, exclude an item, or leave it to the policy again (design 8: the operator's hand)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from ctxengine.engine.budget.demand import Floors
from ctxengine.engine.cache.cost import CostModel
from ctxengine.engine.compaction.acts import HandForm, HistoryActs, Marks
from ctxengine.engine.compaction.marks import present
from ctxengine.engine.compaction.net_cost import NetCost, net_cost
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.items import ItemKind, Unit
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.standing import history_acts
from ctxengine.engine.step import fixed_frame, floors_of
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.access import not_found, plan_row_of, session_of, still_open_session
from ctxengine.service.audit import record_audit
from ctxengine.service.bound_reasoning import (
    counted,
    drop_reasoning,
    open_run,
    reasoning_at_stake,
)
from ctxengine.service.clock import utc_now
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, Present, ServiceError
from ctxengine.service.weigh import prices_of
from ctxengine.service.wiring import counter_of, log_of, plan_from


@dataclass(frozen=True, slots=True)
class Presented:
    """Answer of set_presentation."""

    event: int | None
    """The act's event; None for a preview and where nothing changed."""
    form: str
    sequences: tuple[int, ...]
    item: str | None
    verdict: NetCost
    """What it saves in each request, and what it re-caches once."""
    reasoning_dropped: int = 0
    """Blocks of the open run's reasoning that it makes invalid (design 7.12)."""

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "event": self.event,
            "form": self.form,
            "sequences": list(self.sequences),
            "item": self.item,
            "verdict": self.verdict.model_dump(),
            "reasoning_dropped": self.reasoning_dropped,
        }


def set_presentation(*, actor: Actor, session_id: UUID, spec: Present) -> Presented:
    """Say how a unit, a turn or an item is to stand in requests from the next step on.

    Raises:
        ServiceError: 404 when the session has no such content; 422 `invalid_target` when the form does not go with it; 409
            `session_ended`.
    """
    session = session_of(actor, session_id)
    return redo_once(lambda: _set(actor, session, spec))


def _set(actor: Actor, session: SessionRow, spec: Present) -> Presented:
    log = log_of(session)
    with refusing():
        head = log.head()
        still_open_session(session)
        target = _target(spec)
        units = _units(log, session, target, spec)
        ordinal = _ordinal(units, target, spec)
        plan = plan_from(log, plan_row_of(session))
        sequences = (target.sequence,) if ordinal is not None else tuple(u.sequence for u in units)
        acts = history_acts(log)
        after = _marks_after(acts.marks, spec, sequences, ordinal)
        run = open_run(session)
        verdict = _verdict(log, plan, units, acts, after, prices_of(session), run)
        at_stake = reasoning_at_stake(run, plan.model)
        item = str(ItemId(target.sequence, ordinal)) if ordinal is not None else None
        if spec.preview or after == acts.marks:
            at_stake = at_stake if after != acts.marks else 0
            return Presented(None, spec.form, sequences, item, verdict, at_stake)
        draft = EventDraft(
            type=EventType.PRESENTATION_SET,
            trust=Trust.PLATFORM,
            payload={
                "scope": spec.scope,
                "sequences": list(sequences),
                "ordinal": ordinal,
                "form": spec.form,
                "note": model_view(spec.note),
                "verdict": verdict.model_dump(),
            },
        )
        with transaction.atomic():
            log.lock()
            dropped = drop_reasoning(run) if at_stake else 0
            log.append(
                counted([draft], dropped),
                expected=head.sequence,
                at=utc_now(),
                key=actor.idempotency_key,
            )
            record_audit(
                actor=actor,
                action=f"history.{spec.form}",
                target=f"{session.id}:{spec.target}",
                reason=spec.note,
                after={"scope": spec.scope, "units": len(units), "saved": verdict.saved_tokens},
            )
    return Presented(head.sequence + 1, spec.form, sequences, item, verdict, dropped)


def _target(spec: Present) -> ItemId:
    sequence, dot, ordinal = spec.target.strip().partition(".")
    if not sequence.isdecimal() or (dot and not ordinal.isdecimal()):
        raise ServiceError(
            "invalid_target", 422, "Name an event such as 12, or an item such as 12.0."
        )
    return ItemId(EventSeq(int(sequence)), int(ordinal or 0))


def _units(log: PostgresLog, session: SessionRow, target: ItemId, spec: Present) -> Sequence[Unit]:
    unit = log.unit_of_item(target.sequence)
    if unit is None:
        raise not_found("item")
    if spec.scope != "turn":
        return [unit]
    rows = RunRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
    seeds = sorted(s for s in rows.values_list("seed_event_sequence", flat=True) if s)
    first = max((seed for seed in seeds if seed <= unit.sequence), default=1)
    below = min((seed for seed in seeds if seed > unit.sequence), default=log.head().sequence + 1)
    return log.units(EventSeq(first), EventSeq(below))


def _ordinal(units: Sequence[Unit], target: ItemId, spec: Present) -> int | None:
    """The item that is meant alone; None where units are meant."""
    if spec.form == "excluded" and spec.scope != "item":
        raise ServiceError(
            "invalid_target",
            422,
            "Only a single item is excluded; name it with scope `item`, or fold the unit.",
        )
    if spec.scope != "item":
        return None
    if spec.form in {"pinned", "folded"}:
        raise ServiceError(
            "invalid_target", 422, "Calls and their results stay together: pin or fold the unit."
        )
    item = next((i for unit in units for i in unit.items if i.id == target), None)
    if item is None:
        raise not_found("item")
    if item.kind is ItemKind.TOOL_CALL:
        raise ServiceError(
            "invalid_target",
            422,
            "A call without its arguments would be another call; exclude its result, or fold the unit.",
        )
    return target.ordinal


def _marks_after(
    marks: Marks, spec: Present, sequences: Sequence[int], ordinal: int | None
) -> Marks:
    form = HandForm(spec.form)
    if ordinal is not None:
        item = str(ItemId(EventSeq(sequences[0]), ordinal))
        excluded = set(marks.excluded) - {item}
        if form is HandForm.EXCLUDED:
            excluded.add(item)
        ordered = tuple(item for item in marks.excluded if item in excluded)
        return Marks(marks.pinned, marks.folded, (*ordered, *sorted(excluded - set(ordered))))
    pinned, folded = set(marks.pinned) - set(sequences), set(marks.folded) - set(sequences)
    if form is HandForm.PINNED:
        pinned |= set(sequences)
    elif form is HandForm.FOLDED:
        folded |= set(sequences)
    return Marks(tuple(sorted(pinned)), tuple(sorted(folded)), marks.excluded)


def _verdict(
    log: PostgresLog,
    plan: Plan,
    units: Sequence[Unit],
    acts: HistoryActs,
    after: Marks,
    prices: CostModel | None,
    run: RunRow | None,
) -> NetCost:
    """What the act saves in each request; nothing is re-cached where no byte changes."""
    counter = counter_of(plan.provider, plan.model)
    factor = run.settings.get("factor_millionths", 1_000_000) if run else 1_000_000
    floors = floors_of(log.newest_yields(), fixed_frame(plan, factor).total, acts.undone)
    was = _standing_tokens(present(units, acts.marks, counter), acts.marks, floors)
    will = _standing_tokens(present(units, after, counter), after, floors)
    changed = [unit.sequence for unit, old, new in zip(units, was, will, strict=True) if old != new]
    saved, head = sum(was) - sum(will), log.head()
    behind = 0
    if changed:
        # What the cut has passed stands behind history when it comes back; it moves the open run alone.
        seed = run.seed_event_sequence if run and run.seed_event_sequence else head.sequence + 1
        first = changed[0] if changed[0] >= floors.cut else EventSeq(seed)
        behind = max(0, head.tokens - log.at(first).tokens - saved)
    return net_cost(
        saved_tokens=saved,
        recached_tokens=behind,
        expected_steps=plan.policy.expected_steps,
        forced_by="operator",
        prices=prices,
        prompt_tokens=plan.prefix_tokens + head.tokens,
    )


def _standing_tokens(units: Sequence[Unit], marks: Marks, floors: Floors) -> list[int]:
    """What each unit takes in the next request as marked: passed by the cut, below the pointer floor, or whole."""
    pinned = set(marks.pinned)

    def tokens(unit: Unit) -> int:
        if unit.sequence < floors.cut:
            return unit.tokens if unit.sequence in pinned else 0
        return unit.pointer_tokens if unit.sequence < floors.pointer else unit.tokens

    return [tokens(unit) for unit in units]
