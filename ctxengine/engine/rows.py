"""Rows 9 to 15 of a request in wire order: blocks and units, each rendered once (design 3 and 6)."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter

from ctxengine.engine.compaction.marks import PROMOTED_TEXT
from ctxengine.engine.fresh_parts import fresh_text
from ctxengine.engine.history.projection import Projection, SentBlock
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind, Opaque, Unit
from ctxengine.engine.memo import Block, BuildMemo, Single, Tape
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.render import RenderContext, unit_messages
from ctxengine.engine.request import CheckpointInput, RecordedDigest, Rendered, RunInput
from ctxengine.engine.row_nine import row_nine_text
from ctxengine.engine.stretch import Part, Stretch, Totals
from ctxengine.engine.wire.base import Fragment, WireMessage, WireRenderer, WireText
from ctxengine.engine.wire.native_window import window_fragments

_ROW_OF: dict[Part, int] = {"history": 10, "active": 10, "input": 15}


@dataclass(slots=True)
class Behind:
    """What stands behind the prefix: stretches in wire order, with the places that markers refer to."""

    stretches: list[Stretch] = field(default_factory=list)
    fragments: list[Fragment] = field(default_factory=list)
    opaque_units: list[EventSeq] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)
    cards_end: int = 0
    """Where the blocks of cards end that stay when another is added; 0: there are none."""
    history_end: int = 0
    completed_end: int = 0
    taped: list[tuple[Tape, range]] = field(default_factory=list)
    """Where units stand on the memo's tapes."""
    singles: list[Single] = field(default_factory=list)
    """Units with reasoning, which stand on no tape."""

    def put(self, stretch: Stretch) -> None:
        """Add a stretch at the end."""
        self.stretches.append(stretch)
        self.fragments.extend(stretch.fragments)


def assemble(
    run: RunInput,
    checkpoint: CheckpointInput,
    plan: Plan,
    renderer: WireRenderer,
    memo: BuildMemo,
) -> Behind:
    """Render what is new and put everything behind the prefix in order.

    Raises:
        WireInvalid: a name or an id cannot stand on the wire.
    """
    context = RenderContext(
        nonce_key=run.nonce_key,
        wire_names={tool.name: tool.wire_name for tool in plan.tools},
        api=renderer.api.value,
        foreign_as_pointer=run.imported,
        inline=plan.policy.inline,
        whole_lines=run.projection is not None and run.projection.shows_windows,
        searchable=plan.searchable,
    )
    memo.bind(context, renderer)
    memo.trim((*run.history[:1], *run.active[:1])[0].sequence)
    parts = Behind()
    rows = _Rows(parts, run, renderer, context, memo)
    native = run.projection.native if run.projection is not None else ()
    told = run.projection.row_nine_parts if run.projection is not None else ()
    if told and run.summary is None:
        for text, tokens in told:
            rows.block(9, text, tokens=tokens)
        parts.cards_end = len(parts.fragments)
    else:
        rows.block(9, _row_nine(run), recorded=run.summary, native=native)
    if run.projection is not None:
        rows.carried(run.projection)
    else:
        rows.units(run.history, "history", run.allocation.floors.pointer, {})
    parts.history_end = len(parts.fragments)
    rows.pinned(run.pinned)
    split = _trailing_input(run.active)
    if run.added is not None:
        # Input that an earlier request has shown stays where it was: what this step adds comes behind it.
        split = max(split, bisect_left(run.active, run.fresh_place, key=attrgetter("sequence")))
    rows.completed(run.active[:split], checkpoint.opaque)
    parts.completed_end = len(parts.fragments)
    rows.block(14, fresh_text(run) if run.added is None else run.added, recorded=run.fresh)
    rows.units(run.active[split:], "input", EventSeq(0), {})
    if run.added is not None:
        # Nothing of this request moves in the next one of the run.
        parts.completed_end = len(parts.fragments)
    shown = run.projection
    memo.keep_shown(
        [
            *(unit.sequence for unit in run.pinned),
            *(unit.sequence for _, units in (shown.kept if shown else ()) for unit in units),
        ],
        [block.sequence for block in (*(shown.blocks if shown else ()), *run.sent)],
    )
    return parts


def _trailing_input(active: Sequence[Unit]) -> int:
    """Where the unanswered user input at the end of the run begins."""
    split = len(active)
    while split and active[split - 1].items[0].kind is ItemKind.USER_MESSAGE:
        split -= 1
    return split


def _digest(fragments: Sequence[Fragment]) -> str:
    return hashlib.sha256(b"".join([fragment.data for fragment in fragments])).hexdigest()


def _row_nine(run: RunInput) -> str:
    if run.projection is not None:
        return run.projection.row_nine
    return row_nine_text(run.left_out, run.tiles, run.history, run.active, run.nonce_key)


def _between(shown: Projection) -> Iterator[tuple[int, SentBlock | Sequence[Unit]]]:
    """What stands between carried units, with the index of the unit that it stands in front of; last of all their end."""
    found: list[tuple[EventSeq, int, SentBlock | Sequence[Unit]]] = [
        *((place, 0, units) for place, units in shown.kept),
        *((block.before, 1, block) for block in shown.blocks),
    ]
    for place, _, what in sorted(found, key=itemgetter(0, 1)):
        yield bisect_left(shown.history, place, key=attrgetter("sequence")), what
    yield len(shown.history), ()


@dataclass(slots=True)
class _Rows:
    """Puts blocks and units behind one another."""

    parts: Behind
    run: RunInput
    renderer: WireRenderer
    context: RenderContext
    memo: BuildMemo

    def block(
        self,
        row: int,
        text: str,
        *,
        recorded: RecordedDigest | None = None,
        part: Part = "block",
        native: Sequence[str] = (),
        tokens: int = 0,
    ) -> None:
        """A text of platform or memory that is no unit; `recorded` stands in for one that is no longer kept.

        Args:
            native: items of a provider's own window in front of the text, to be sent as they came.
            tokens: what it takes, where no row of the manifest says so (raw count).
        """
        if recorded is not None:
            self.parts.absent.add(recorded.why)
            bounds = (Totals(), Totals(tokens=tokens))
            self.parts.put(Stretch(row, part, "whole", (), (), (recorded.digest,), bounds))
            return
        if not text and not native:
            return
        fragments = window_fragments(self.renderer.api, native)
        if text:
            fragments += self.renderer.fragments(WireMessage("user", (WireText(text),)))
        digest = _digest(fragments)
        bounds = (
            Totals(),
            Totals(
                len(fragments), sum([len(fragment.data) for fragment in fragments]), tokens=tokens
            ),
        )
        self.parts.put(Stretch(row, part, "whole", (), fragments, (digest,), bounds))

    def completed(self, units: Sequence[Unit], opaque: Mapping[EventSeq, Sequence[Opaque]]) -> None:
        """The run's completed exchanges, with the fresh rows that stay where earlier steps sent them."""
        floor, begin = self.run.allocation.active_pointer, 0
        for block in self.run.sent:
            place = bisect_left(units, block.before, key=attrgetter("sequence"))
            self.units(units[begin:place], "active", floor, opaque)
            begin = max(begin, place)
            self._sent(block, "sent")
        self.units(units[begin:], "active", floor, opaque)

    def carried(self, shown: Projection) -> None:
        """Everything before the run that stands unit by unit: in its closed form, or as it was sent, with what stood there."""
        begin = 0
        for place, what in _between(shown):
            for (as_sent, _), some in groupby(shown.history[begin:place], shown.stands):
                form = "whole" if as_sent else shown.form
                self.units(list(some), "history", EventSeq(0), {}, whole=form)
            begin = place
            if isinstance(what, SentBlock):
                self._sent(what, "kept")
            elif what:
                self.block(10, shown.promoted_line, part="kept")
                for unit in what:
                    self._out_of_order(unit, "kept", shown.form)

    def _sent(self, block: SentBlock, part: Part) -> None:
        if not block.text:
            gone = RecordedDigest(block.digest, "erased") if block.text is None else None
            self.block(10, "", recorded=gone, part=part, tokens=block.tokens)
            return
        known = self.memo.blocks.get(block.sequence)
        if known is None or known.text != block.text:
            fragments = self.renderer.fragments(WireMessage("user", (WireText(block.text),)))
            known = Block(block.text, tuple(fragments), _digest(fragments))
            self.memo.blocks[block.sequence] = known
        size = sum([len(fragment.data) for fragment in known.fragments])
        bounds = (Totals(), Totals(len(known.fragments), size, tokens=block.tokens))
        self.parts.put(Stretch(10, part, "whole", (), known.fragments, (known.digest,), bounds))

    def units(
        self,
        units: Sequence[Unit],
        part: Part,
        pointer_floor: EventSeq,
        opaque: Mapping[EventSeq, Sequence[Opaque]],
        *,
        whole: str = "whole",
    ) -> None:
        """Consecutive units: pointers below the floor but for those kept whole by hand, whole from there on.

        Args:
            whole: the form of those that are no pointers, where the engine shows them in another than their own.
        """
        for form, some in self._forms(units, pointer_floor, whole):
            apart = (
                [
                    place
                    for place, unit in enumerate(some)
                    if opaque.get(unit.sequence) or unit.sequence in self.run.digests
                ]
                if opaque or self.run.digests
                else []
            )
            begin = 0
            for place in apart:
                self._taped(some[begin:place], part, form)
                self._apart(some[place], part, form, tuple(opaque.get(some[place].sequence, ())))
                begin = place + 1
            self._taped(some[begin:], part, form)

    def _forms(
        self, units: Sequence[Unit], pointer_floor: EventSeq, whole: str
    ) -> Iterator[tuple[str, Sequence[Unit]]]:
        split = bisect_left(units, pointer_floor, key=attrgetter("sequence"))
        begin = 0
        if self.run.marks.pinned:
            by_hand = set(self.run.marks.pinned)
            for place in [p for p in range(split) if units[p].sequence in by_hand]:
                yield "pointer", units[begin:place]
                yield whole, units[place : place + 1]
                begin = place + 1
        yield "pointer", units[begin:split]
        yield whole, units[split:]

    def pinned(self, units: Sequence[Unit]) -> None:
        """Units that stand behind history because somebody wants them whole, opened by a platform line (design 7.8)."""
        if not units:
            return
        shown = self.run.projection
        form = "whole" if shown is None else shown.form
        self.block(10, PROMOTED_TEXT if shown is None else shown.promoted_line)
        for unit in units:
            self._out_of_order(unit, "pinned", form)

    def _out_of_order(self, unit: Unit, part: Part, form: str) -> None:
        """A unit that stands behind newer ones."""
        recorded = self.run.digests.get(unit.sequence)
        if recorded is not None:
            self.parts.absent.add(recorded.why)
            rendered = Rendered((), recorded.digest)
        else:
            single = self.memo.promoted.get(unit.sequence)
            if single is None or (single.unit, single.form) != (unit, form):
                made = render_unit(unit, self.context, self.renderer, as_pointers=False)
                single = Single(unit, form, (), made)
                self.memo.promoted[unit.sequence] = single
            rendered = single.rendered
            self.parts.singles.append(single)
        bounds = (Totals(), Totals().after(unit, rendered.fragments))
        self.parts.put(
            Stretch(10, part, form, (unit,), rendered.fragments, (rendered.digest,), bounds)
        )

    def _taped(self, units: Sequence[Unit], part: Part, form: str) -> None:
        if not units:
            return
        tape = self.memo.tape(form)
        places = tape.place(
            list(units),
            lambda unit: render_unit(
                unit, self.context, self.renderer, as_pointers=form == "pointer"
            ),
        )
        self.parts.taped.append((tape, places))
        self.parts.put(tape.stretch(places, row=_ROW_OF[part], part=part, form=form))

    def _apart(self, unit: Unit, part: Part, form: str, opaque: tuple[Opaque, ...]) -> None:
        """A unit with reasoning, or one whose bytes may be gone."""
        recorded = self.run.digests.get(unit.sequence)
        if recorded is not None and not opaque:
            self.parts.absent.add(recorded.why)
            rendered = Rendered((), recorded.digest)
        else:
            single = self._with_reasoning(unit, form, opaque)
            rendered = single.rendered
            self.parts.singles.append(single)
            self.parts.opaque_units.append(unit.sequence)
        bounds = (Totals(), Totals().after(unit, rendered.fragments))
        self.parts.put(
            Stretch(
                _ROW_OF[part], part, form, (unit,), rendered.fragments, (rendered.digest,), bounds
            )
        )

    def _with_reasoning(self, unit: Unit, form: str, opaque: tuple[Opaque, ...]) -> Single:
        single = self.memo.singles.get(unit.sequence)
        if single is None or (single.unit, single.form, single.opaque) != (unit, form, opaque):
            rendered = render_unit(
                unit,
                self.context,
                self.renderer,
                as_pointers=form == "pointer",
                opaque=opaque,
            )
            single = Single(unit, form, opaque, rendered)
            self.memo.singles[unit.sequence] = single
        return single


def render_unit(
    unit: Unit,
    context: RenderContext,
    renderer: WireRenderer,
    *,
    as_pointers: bool,
    opaque: tuple[Opaque, ...] = (),
) -> Rendered:
    """Render one unit to ready bytes with their digest."""
    fragments: list[Fragment] = []
    digest = hashlib.sha256()
    for message in unit_messages(unit, context, as_pointers=as_pointers, opaque=opaque):
        for fragment in renderer.fragments(message):
            fragments.append(fragment)
            digest.update(fragment.role.encode() + b"\x00" + fragment.data + b"\x00")
    return Rendered(tuple(fragments), digest.hexdigest())
