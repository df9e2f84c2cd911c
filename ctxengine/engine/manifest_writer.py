"""Writing the manifest and the budget of a built request from the decisions that shaped it.

Figures come from the allocation and from stored sums, never from looking at content again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.items import ItemKind, Unit
from ctxengine.engine.layout import ROWS
from ctxengine.engine.manifest import Budget, Cut, Form, Manifest, Reason, RowTotal, Span
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.request import RunInput
from ctxengine.engine.trust.levels import Trust


def write_manifest(run: RunInput, plan: Plan) -> tuple[Manifest, Budget]:
    """The manifest and the budget of one request."""
    split = _input_split(run.active)
    completed, trailing = run.active[:split], run.active[split:]
    spans = [
        *_left_out_spans(run),
        *_history_spans(run),
        *_active_spans(run, completed),
        *_input_spans(trailing),
    ]
    rows = _rows(run, plan, spans)
    budget = _budget(run, rows)
    manifest = Manifest(
        rows=rows,
        spans=spans,
        cut=_cut(run),
        yields=list(run.allocation.yields),
        warnings=list(plan.warnings),
    )
    return manifest, budget


def _input_split(active: Sequence[Unit]) -> int:
    split = len(active)
    while split and active[split - 1].items[0].kind is ItemKind.USER_MESSAGE:
        split -= 1
    return split


def _cut(run: RunInput) -> Cut:
    floors = run.allocation.floors
    starts = run.history[0].sequence if run.history else run.active[0].sequence
    return Cut(
        at_sequence=starts,
        floor_sequence=floors.cut,
        pointer_floor_sequence=floors.pointer,
        room=run.allocation.room,
        suffix=run.allocation.history,
        uncut=run.allocation.uncut,
        left_out_units=run.left_out.units,
        left_out_turns=run.left_out.turns,
        left_out_tokens=run.left_out.tokens,
    )


def _left_out_spans(run: RunInput) -> list[Span]:
    if not run.left_out.units:
        return []
    return [
        Span(
            row=10,
            from_item="1.0",
            to_item=f"{run.left_out.through}.0",
            form=Form.OUT,
            reason=Reason.BELOW_CUT,
            items=0,
            units=run.left_out.units,
            tokens=run.left_out.tokens,
            numbers={
                "room": run.allocation.room,
                "suffix": run.allocation.history,
                "uncut": run.allocation.uncut,
                "floor_sequence": run.allocation.floors.cut,
            },
        ),
        Span(row=9, form=Form.WHOLE, reason=Reason.OMISSION, items=1, tokens=0),
    ]


def _history_spans(run: RunInput) -> list[Span]:
    floor = run.allocation.floors.pointer
    pointed = [unit for unit in run.history if unit.sequence < floor]
    whole = run.history[len(pointed) :]
    spans = []
    if pointed:
        spans.append(
            _span(pointed, Form.POINTER, Reason.BELOW_POINTER_FLOOR, {"floor_sequence": floor})
        )
    if whole:
        numbers = {"room": run.allocation.room, "suffix": run.allocation.history}
        spans.append(_span(whole, Form.WHOLE, Reason.FITS, numbers))
    return spans


def _active_spans(run: RunInput, completed: Sequence[Unit]) -> list[Span]:
    floor = run.allocation.active_pointer
    pointed = [unit for unit in completed if unit.sequence < floor]
    whole = completed[len(pointed) :]
    spans = []
    if pointed:
        spans.append(
            _span(pointed, Form.POINTER, Reason.ACTIVE_TOO_LARGE, {"floor_sequence": floor})
        )
    if whole:
        spans.append(_span(whole, Form.WHOLE, Reason.ACTIVE_RUN, {}))
    return spans


def _input_spans(trailing: Sequence[Unit]) -> list[Span]:
    if not trailing:
        return []
    return [_span(trailing, Form.WHOLE, Reason.NEVER_YIELDS, {}, row=15)]


def _span(
    units: Sequence[Unit],
    form: Form,
    reason: Reason,
    numbers: dict[str, int],
    *,
    row: int = 10,
) -> Span:
    pointer = form is Form.POINTER
    total = sum(unit.pointer_tokens if pointer else unit.tokens for unit in units)
    user = sum(unit.user_tokens for unit in units)
    results = sum(unit.result_tokens for unit in units)
    if pointer:
        results = max(0, results - sum(unit.tokens - unit.pointer_tokens for unit in units))
    trust = {
        Trust.USER.value: user,
        Trust.MODEL.value: total - user - results,
        Trust.EXTERNAL_UNTRUSTED.value: results,
    }
    return Span(
        row=row,
        from_item=str(units[0].items[0].id),
        to_item=f"{units[-1].last_sequence}.0",
        form=form,
        reason=reason,
        items=sum(len(unit.items) for unit in units),
        units=len(units),
        tokens=total,
        trust={level: tokens for level, tokens in trust.items() if tokens},
        numbers=numbers,
    )


def _rows(run: RunInput, plan: Plan, spans: Sequence[Span]) -> list[RowTotal]:
    fresh = {
        9: (run.row_tokens.get(9, 0), 1 if run.row_tokens.get(9) else 0),
        13: (
            run.allocation.fresh + run.row_tokens.get(13, 0),
            len(run.memory.knowledge) + len(run.memory.recall) + len(run.memory.corrections),
        ),
        14: (run.row_tokens.get(14, 0), 1 if run.row_tokens.get(14) else 0),
    }
    rows = []
    for row in ROWS:
        if row.region == "A":
            rows.append(_prefix_row(row.number, plan))
            continue
        tokens, items = fresh.get(row.number, (0, 0))
        trust: dict[str, int] = {}
        mine = [span for span in spans if span.row == row.number and span.form is not Form.OUT]
        for span in mine:
            if row.number in {10, 15}:
                tokens += span.tokens
                items += span.items
            for level, amount in span.trust.items():
                trust[level] = trust.get(level, 0) + amount
        if row.number == 10:
            # Opaque reasoning belongs to the conversation row and is in no span.
            tokens += run.row_tokens.get(10, 0)
        rows.append(
            RowTotal(
                row=row.number,
                tokens=tokens,
                items=items,
                cap_tokens=plan.policy.cap(row.budget_class).tokens,
                source=run.source,
                trust=trust or ({row.trust: tokens} if tokens and "per" not in row.trust else {}),
                reason=_body_reason(row.number, items, mine),
            )
        )
    return rows


def _body_reason(row: int, items: int, spans: Sequence[Span]) -> Reason:
    if not items:
        return Reason.NOTHING_THIS_STEP
    if row == 9:
        return Reason.OMISSION
    return spans[-1].reason if spans else Reason.NEVER_YIELDS


def _prefix_row(number: int, plan: Plan) -> RowTotal:
    tokens, items = plan.row_counts.get(str(number), (0, 0))
    row = ROWS[number - 1]
    return RowTotal(
        row=number,
        tokens=tokens,
        items=items,
        cap_tokens=plan.policy.cap(row.budget_class).tokens,
        source=plan.by_class[row.budget_class.value].source if plan.by_class else "estimated",
        trust={row.trust: tokens} if tokens and "per" not in row.trust else {},
        reason=Reason.PINNED if items else Reason.NOTHING_PINNED,
    )


def _budget(run: RunInput, rows: Sequence[RowTotal]) -> Budget:
    fixed, allocation = run.fixed, run.allocation
    request = sum(row.tokens for row in rows)
    return Budget(
        window=fixed.window,
        policy_cap=fixed.policy_cap,
        total=fixed.total,
        factor=fixed.factor,
        reserve=fixed.reserve,
        margin=fixed.margin,
        usable=fixed.usable,
        prefix=fixed.prefix,
        body=fixed.body,
        never_yield=allocation.never_yield,
        fresh=allocation.fresh,
        history_room=allocation.room,
        history=allocation.history,
        tool_results=sum(
            unit.result_tokens for unit in run.history if unit.sequence >= allocation.floors.pointer
        )
        + sum(unit.result_tokens for unit in run.active),
        tool_results_cap=fixed.tool_results_cap,
        free=max(0, fixed.usable - request),
        request=request,
    )
