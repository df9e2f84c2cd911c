"""Writing the manifest and the budget of a built request from the decisions that shaped it.

Figures come from the allocation and from stored sums, never from looking at content again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from ctxengine.engine.compaction.packet import SUMMARY_TRUST, Packet, Tile
from ctxengine.engine.history.projection import Projection, SentBlock
from ctxengine.engine.items import ItemKind
from ctxengine.engine.layout import ROWS
from ctxengine.engine.manifest import Budget, Cut, Form, Manifest, Reason, RowTotal, Span
from ctxengine.engine.memo import Region
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.request import RunInput
from ctxengine.engine.stretch import Part, Stretch, Totals, together
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.working_state.state import state_trust


def write_manifest(
    run: RunInput, plan: Plan, stretches: Sequence[Stretch], region: Region
) -> tuple[Manifest, Budget]:
    """The manifest and the budget of one request.

    Args:
        stretches: what stands behind the prefix, in wire order.
        region: region A; its rows are written once and kept there.
    """
    if not region.rows:
        region.rows = tuple(_prefix_row(row.number, plan) for row in ROWS if row.region == "A")
    spans = [
        *_left_out_spans(run),
        *_history_spans(run, stretches),
        *_promoted_spans(run, stretches),
        *_active_spans(run, stretches),
        *_sent_spans(run),
        *_input_spans(stretches),
        *_hand_spans(run),
    ]
    rows = [*region.rows, *_body_rows(run, plan, spans)]
    budget = _budget(run, rows, stretches)
    manifest = Manifest(
        rows=rows,
        spans=spans,
        cut=_cut(run),
        yields=list(run.allocation.yields),
        warnings=[*plan.warnings, *_over_horizon(run, budget), *_sized(run), *_held(run)],
    )
    return manifest, budget


def _over_horizon(run: RunInput, budget: Budget) -> list[str]:
    """The warning of a request that no plan could keep within what was measured: its open turn alone is too large for it."""
    horizon = run.projection.horizon if run.projection is not None else 0
    if not horizon or budget.request <= horizon:
        return []
    return [
        f"The request takes {budget.request:,} tokens and the model's horizon is {horizon:,}: beyond it the model may stop "
        "following instructions. Hand part of the work to a child run, or route the session to a larger model."
    ]


def _sized(run: RunInput) -> list[str]:
    """What made the budget smaller than the session's model would need it."""
    if not run.sized_for:
        return []
    return [
        f"Sized for the fallback leg {run.sized_for}: {run.fixed.usable:,} tokens are usable, by this session's counting."
    ]


def _held(run: RunInput) -> list[str]:
    """What this step had to keep to itself, and what of the provider's own tools it could not send."""
    left = (
        [
            "The user spoke before a tool that the provider runs had answered, or a result's call is not in view: what is"
            " left of them stands as a note, and the reasoning in front of it is not replayed."
        ]
        if run.abandoned
        else []
    )
    if not run.holds_fresh:
        return left
    return [
        *left,
        "The newest answer waits for a tool that its provider runs, and only results may follow it: rows 11 to 14 are held back"
        " until the next step.",
    ]


def _cut(run: RunInput) -> Cut:
    floors = run.allocation.floors
    cut = run.projection.cut if run.projection is not None else 0
    kept = (unit.sequence for unit in run.history if unit.sequence >= cut)
    starts = next(kept, run.active[0].sequence if run.active else floors.cut)
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


def _promoted_spans(run: RunInput, stretches: Sequence[Stretch]) -> list[Span]:
    """Units from before the cut that stand behind history: no span runs over one that does not."""
    shown = run.projection
    form = Form.WHOLE if shown is None else shown.manifest_form
    reason = Reason.PINNED_BY_HAND if shown is None else Reason.PROMOTED
    groups: list[list[Stretch]] = []
    for part in ("kept", "pinned"):
        for stretch in stretches:
            if stretch.part != part or stretch.form != form or not stretch.units:
                continue
            # Whole turns are kept, and a message opens each; single units are pinned.
            if part == "pinned" or not groups or _opens_turn(stretch):
                groups.append([])
            groups[-1].append(stretch)
    return [span for some in groups for span in _spans(some, some[0].part, form, reason, {})]


def _opens_turn(stretch: Stretch) -> bool:
    return stretch.units[0].items[0].kind is ItemKind.USER_MESSAGE


def _left_out_spans(run: RunInput) -> list[Span]:
    if run.projection is not None:
        return list(run.projection.spans)
    if not run.left_out.units:
        return []
    if run.tiles:
        return [span for tile in run.tiles for span in _tile_spans(tile)]
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


def _tile_spans(tile: Tile) -> list[Span]:
    """What one range before the cut is told by: a summary, or nothing but a line."""
    summary = isinstance(tile, Packet)
    reason = Reason.SUMMARISED if isinstance(tile, Packet) else Reason.BELOW_CUT
    out = Span(
        row=10,
        from_item=f"{tile.first}.0",
        to_item=f"{tile.through}.0",
        form=Form.OUT,
        reason=reason,
        items=0,
        units=tile.units,
        tokens=tile.tokens_before if isinstance(tile, Packet) else tile.tokens,
        numbers={"depth": tile.depth, "event": tile.sequence} if isinstance(tile, Packet) else {},
    )
    shown = Span(
        row=9,
        from_item=out.from_item,
        to_item=out.to_item,
        form=Form.PACKET if summary else Form.WHOLE,
        reason=Reason.SUMMARISED if summary else Reason.OMISSION,
        items=1,
        tokens=tile.tokens if isinstance(tile, Packet) else 0,
        trust={SUMMARY_TRUST.value: tile.tokens} if isinstance(tile, Packet) else {},
    )
    return [out, shown]


def _hand_spans(run: RunInput) -> list[Span]:
    """Which of the units shown above an operator marked; their tokens are counted there."""
    marked = run.marks
    if not marked:
        return []
    shown = {unit.sequence for unit in (*run.history, *run.active)}
    folded = [sequence for sequence in marked.folded if sequence in shown]
    pinned = [sequence for sequence in marked.pinned if sequence in shown]
    spans = [
        _hand_span(f"{sequence}.0", Form.POINTER, Reason.FOLDED_BY_HAND) for sequence in folded
    ]
    spans += [_hand_span(f"{sequence}.0", Form.WHOLE, Reason.PINNED_BY_HAND) for sequence in pinned]
    items = {str(item.id) for unit in (*run.history, *run.active) for item in unit.items}
    excluded = [item for item in marked.excluded if item in items]
    return spans + [_hand_span(item, Form.OUT, Reason.EXCLUDED_BY_HAND) for item in excluded]


def _hand_span(item: str, form: Form, reason: Reason) -> Span:
    return Span(row=10, from_item=item, to_item=item, form=form, reason=reason, items=0, tokens=0)


def _history_spans(run: RunInput, stretches: Sequence[Stretch]) -> list[Span]:
    floor = run.allocation.floors.pointer
    room = {"room": run.allocation.room, "suffix": run.allocation.history}
    shown = run.projection
    if shown is not None:
        if not shown.as_sent:
            # Units from before the cut stand in front of it by a reason of their own: the engine's spans tell them.
            behind = [s for s in stretches if s.part == "history" and _starts(s) >= shown.cut]
            return _spans(behind, "history", shown.manifest_form, shown.reason, room)
        return [*_spans_by_form(shown, stretches, room), *_block_spans(shown.blocks)]
    return [
        *_spans(
            stretches,
            "history",
            Form.POINTER,
            Reason.BELOW_POINTER_FLOOR,
            {"floor_sequence": floor},
        ),
        *_spans(stretches, "history", Form.WHOLE, Reason.FITS, room),
    ]


def _starts(stretch: Stretch) -> int:
    return stretch.units[0].sequence if stretch.units else 0


def _spans_by_form(
    shown: Projection, stretches: Sequence[Stretch], room: Mapping[str, int]
) -> list[Span]:
    """One span for each run of neighbouring turns of one form: the ranges of two of them never overlap."""
    carried = [stretch for stretch in stretches if stretch.part == "history"]
    spans = []
    for form, some in groupby(carried, key=attrgetter("form")):
        reason = shown.reason if form == shown.form else Reason.SENT_EARLIER
        spans += _spans(list(some), "history", Form(form), reason, room)
    return spans


def _active_spans(run: RunInput, stretches: Sequence[Stretch]) -> list[Span]:
    floor = {"floor_sequence": run.allocation.active_pointer}
    return [
        *_spans(stretches, "active", Form.POINTER, Reason.ACTIVE_TOO_LARGE, floor),
        *_spans(stretches, "active", Form.WHOLE, Reason.ACTIVE_RUN, {}),
    ]


def _sent_spans(run: RunInput) -> list[Span]:
    """Fresh rows that stay where earlier steps of the run sent them."""
    return _block_spans(run.sent)


def _block_spans(blocks: Sequence[SentBlock]) -> list[Span]:
    if not blocks:
        return []
    return [
        Span(
            row=10,
            form=Form.WHOLE,
            reason=Reason.SENT_EARLIER,
            items=len(blocks),
            tokens=sum(block.tokens for block in blocks),
            trust=_added_up(block.by_trust for block in blocks),
            numbers={
                f"row_{row}": amount
                for row, amount in _added_up(block.by_row for block in blocks).items()
            },
        )
    ]


def _added_up(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            sums[name] = sums.get(name, 0) + amount
    return sums


def _input_spans(stretches: Sequence[Stretch]) -> list[Span]:
    return _spans(stretches, "input", Form.WHOLE, Reason.NEVER_YIELDS, {}, row=15)


def _spans(
    stretches: Sequence[Stretch],
    part: Part,
    form: Form,
    reason: Reason,
    numbers: Mapping[str, int],
    *,
    row: int = 10,
) -> list[Span]:
    """One span over all stretches of a part and form; none when there are none."""
    mine = [stretch for stretch in stretches if stretch.part == part and stretch.form == form]
    if not mine:
        return []
    totals = together([stretch.totals for stretch in mine])
    tokens = totals.pointer_tokens if form is Form.POINTER else totals.tokens
    results = _result_tokens(totals, pointer=form is Form.POINTER)
    trust = {
        Trust.USER.value: totals.user_tokens,
        Trust.MODEL.value: tokens - totals.user_tokens - results,
        Trust.EXTERNAL_UNTRUSTED.value: results,
    }
    return [
        Span(
            row=row,
            from_item=str(mine[0].units[0].items[0].id),
            to_item=f"{mine[-1].units[-1].last_sequence}.0",
            form=form,
            reason=reason,
            items=totals.items,
            units=totals.units,
            tokens=tokens,
            trust={level: amount for level, amount in trust.items() if amount},
            numbers=dict(numbers),
        )
    ]


def _result_tokens(totals: Totals, *, pointer: bool) -> int:
    """What tool results take in the form they are shown in."""
    saved = totals.tokens - totals.pointer_tokens if pointer else 0
    return max(0, totals.result_tokens - saved)


def _body_rows(run: RunInput, plan: Plan, spans: Sequence[Span]) -> list[RowTotal]:
    fresh = {
        9: (run.row_tokens.get(9, 0), 1 if run.row_tokens.get(9) else 0),
        11: (run.row_tokens.get(11, 0), len(run.skills)),
        12: (run.row_tokens.get(12, 0), run.state.entries if run.row_tokens.get(12) else 0),
        13: (
            run.allocation.fresh + run.row_tokens.get(13, 0),
            len(run.memory.knowledge) + len(run.memory.recall) + len(run.memory.corrections),
        ),
        14: (run.row_tokens.get(14, 0), 1 if run.row_tokens.get(14) else 0),
    }
    if run.added is not None:
        # Where earlier blocks stay in place, a step pays for what it adds to them.
        fresh |= {row: (added, 1) for row, added in _added_rows(run).items()}
    rows = []
    for row in ROWS:
        if row.region == "A":
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
                trust=trust
                or _state_trust(run, row.number, tokens)
                or ({row.trust: tokens} if tokens and "per" not in row.trust else {}),
                reason=_body_reason(row.number, items, mine),
            )
        )
    return rows


def _added_rows(run: RunInput) -> dict[int, int]:
    return {row: run.added_tokens.get(row, 0) for row in (11, 12, 13, 14)}


def _state_trust(run: RunInput, row: int, tokens: int) -> dict[str, int]:
    """The working state under the lowest trust among its entries."""
    if row != 12 or not tokens:
        return {}
    return {state_trust(run.state).value: tokens}


def _body_reason(row: int, items: int, spans: Sequence[Span]) -> Reason:
    if not items:
        return Reason.NOTHING_THIS_STEP
    if row == 9:
        summarised = any(span.reason is Reason.SUMMARISED for span in spans)
        told = spans[0].reason if spans else Reason.OMISSION
        return Reason.SUMMARISED if summarised else told
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


def _budget(run: RunInput, rows: Sequence[RowTotal], stretches: Sequence[Stretch]) -> Budget:
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
            _result_tokens(stretch.totals, pointer=stretch.form == "pointer")
            for stretch in stretches
        ),
        tool_results_cap=fixed.tool_results_cap,
        free=max(0, fixed.usable - request),
        request=request,
    )
