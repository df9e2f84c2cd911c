"""What earlier builds of a session worked out, so that the next one pays for its new items only (design 12).

A memo is an argument, never a global. It can save time and nothing else: whatever it hands out was made from values equal to
those asked for now, so that a build with one gives the bytes of a build without. It may be dropped at any moment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind, Opaque, Unit
from ctxengine.engine.items import Part as ContentPart
from ctxengine.engine.manifest import RowTotal
from ctxengine.engine.plan.plan import Plan, wire_prefix, wire_prefix_sha256
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.render import RenderContext
from ctxengine.engine.request import Rendered
from ctxengine.engine.server_calls import Served, served_in, serves
from ctxengine.engine.stretch import Part, Stretch, Totals
from ctxengine.engine.wire.base import Fragment, Marker, WireParams, WirePrefix, WireRenderer

_SLACK = 256
"""Units kept in front of what was last asked for, before they are dropped."""

_CALLS_KEPT = 50_000
"""Call ids remembered before all are forgotten and units are looked at anew."""

_LINE_CHARS = 500
_LINES_KEPT = 32

_start = attrgetter("sequence")


def known_run(kept: Sequence[Unit], units: Sequence[Unit]) -> tuple[int, int]:
    """Where `units` begin in `kept`, and how many of them stand there equal and in order."""
    first = bisect_left(kept, units[0].sequence, key=_start)
    there = kept[first : first + len(units)]
    if there == units[: len(there)]:
        return first, len(there)
    same = 0
    while there[same] == units[same]:
        same += 1
    return first, same


class Tape:
    """Rendered units of one form, oldest first; grows at its end and is cut where a unit changed."""

    def __init__(self) -> None:
        """Start empty."""
        self.units: list[Unit] = []
        self.sound: list[bool] = []
        """Which of them were found to keep the provider's rules wherever they stand."""
        self._fragments: list[Fragment] = []
        self._digests: list[str] = []
        self._bounds: list[Totals] = [Totals()]

    def place(self, units: list[Unit], render: Callable[[Unit], Rendered]) -> range:
        """Make sure these consecutive units stand on the tape; gives their places."""
        first, same = known_run(self.units, units)
        if same < len(units):
            self._drop_from(first + same)
            for unit in units[same:]:
                self._add(unit, render(unit))
        return range(first, first + len(units))

    def trim(self, first: EventSeq) -> None:
        """Let go of units far in front of `first`."""
        place = bisect_left(self.units, first, key=_start)
        if place > _SLACK:
            self._drop_until(place)

    def stretch(self, places: range, *, row: int, part: Part, form: str) -> Stretch:
        """The units at these places as a stretch of a request."""
        bounds = self._bounds[places.start : places.stop + 1]
        base = self._bounds[0].fragments
        return Stretch(
            row,
            part,
            form,
            self.units[places.start : places.stop],
            self._fragments[bounds[0].fragments - base : bounds[-1].fragments - base],
            self._digests[places.start : places.stop],
            bounds,
        )

    def fragments_at(self, place: int) -> list[Fragment]:
        """The fragments of one unit."""
        base = self._bounds[0].fragments
        return self._fragments[
            self._bounds[place].fragments - base : self._bounds[place + 1].fragments - base
        ]

    def _add(self, unit: Unit, rendered: Rendered) -> None:
        self.units.append(unit)
        self.sound.append(False)
        self._fragments.extend(rendered.fragments)
        self._digests.append(rendered.digest)
        self._bounds.append(self._bounds[-1].after(unit, rendered.fragments))

    def _drop_from(self, place: int) -> None:
        if place >= len(self.units):
            return
        del self._fragments[self._bounds[place].fragments - self._bounds[0].fragments :]
        del self.units[place:], self.sound[place:], self._digests[place:]
        del self._bounds[place + 1 :]

    def _drop_until(self, place: int) -> None:
        del self._fragments[: self._bounds[place].fragments - self._bounds[0].fragments]
        del self.units[:place], self.sound[:place], self._digests[:place], self._bounds[:place]


@dataclass(slots=True)
class Single:
    """A unit rendered with its reasoning: what it was made from and what came out."""

    unit: Unit
    form: str
    opaque: tuple[Opaque, ...] = field(repr=False)
    rendered: Rendered = field(repr=False)
    sound: bool = False
    """Whether it was found to keep the provider's rules."""


class Block(NamedTuple):
    """A block of fresh rows as it was rendered."""

    text: str
    fragments: tuple[Fragment, ...]
    digest: str


@dataclass(slots=True)
class Region:
    """Region A of a plan, worked out once."""

    plan: Plan
    nonce_key: bytes = field(repr=False)
    version: str
    prefix: WirePrefix
    sha256: str
    rows: tuple[RowTotal, ...] = ()
    """Its rows in the manifest, once they were written."""
    checked: set[tuple[WireParams, tuple[Marker, ...]]] = field(default_factory=set)
    """Parameters and prefix markers under which it was held against the provider's rules."""


class RememberingCounter:
    """A counter that keeps the counts of short platform lines, which hardly change from step to step."""

    def __init__(self, counter: TokenCounter) -> None:
        """Wrap a counter; numbers stay its own."""
        self._counter = counter
        self.label = counter.label
        self.exact = counter.exact
        self.tools_once = counter.tools_once
        self._known: dict[str, int] = {}

    def text(self, text: str) -> int:
        """Tokens of a text."""
        known = self._known.get(text)
        if known is None:
            known = self._counter.text(text)
            if len(text) <= _LINE_CHARS:
                if len(self._known) >= _LINES_KEPT:
                    self._known.clear()
                self._known[text] = known
        return known

    def parts(self, parts: Sequence[ContentPart]) -> int:
        """Tokens of a message's content, framing included."""
        return self._counter.parts(parts)

    def call(self, name: str, arguments: str) -> int:
        """Tokens of a tool call, framing included."""
        return self._counter.call(name, arguments)

    def tool(self, name: str, description: str, schema: str) -> int:
        """Tokens of a tool definition, framing included."""
        return self._counter.tool(name, description, schema)


class BuildMemo:
    """Keeps what one session's builds have in common. Not for two threads at once."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.singles: dict[EventSeq, Single] = {}
        self.promoted: dict[EventSeq, Single] = {}
        """Units that stand behind newer ones."""
        self.blocks: dict[EventSeq, Block] = {}
        """Fresh rows that stay where they were sent, by the event that keeps each."""
        self._tapes: dict[str, Tape] = {}
        self._paired: list[Unit] = []
        self.serving: set[EventSeq] = set()
        """Where units of `paired` may hold calls of tools that the provider runs."""
        self._served: dict[EventSeq, tuple[Unit, Served]] = {}
        self._region: Region | None = None
        self._context: tuple[RenderContext, str] | None = None
        self._calls: dict[str, EventSeq] = {}
        self._counter: tuple[TokenCounter, RememberingCounter] | None = None

    def counter(self, counter: TokenCounter) -> TokenCounter:
        """The counter, with a memory for what is counted again on every step."""
        kept = self._counter
        if kept is None or (type(kept[0]), kept[0].label) != (type(counter), counter.label):
            self._counter = kept = (counter, RememberingCounter(counter))
        return kept[1]

    def region(self, plan: Plan, nonce_key: bytes, renderer: WireRenderer) -> Region:
        """Region A under a plan."""
        kept = self._region
        if (
            kept is not None
            and kept.nonce_key == nonce_key
            and kept.version == renderer.version
            and (kept.plan is plan or kept.plan == plan)
        ):
            return kept
        self._region = Region(
            plan,
            nonce_key,
            renderer.version,
            wire_prefix(plan, nonce_key),
            wire_prefix_sha256(plan, nonce_key, renderer),
        )
        return self._region

    def bind(self, context: RenderContext, renderer: WireRenderer) -> None:
        """Say how units are rendered from here on; another way forgets the units of the old one."""
        bound = (context, renderer.version)
        if bound != self._context:
            self._context = bound
            self._tapes.clear()
            self.singles.clear()
            self.promoted.clear()
            self.blocks.clear()

    def claim_calls(self, unit: Unit) -> bool:
        """Whether no other unit seen so far has a call id of this one."""
        if len(self._calls) > _CALLS_KEPT:
            self._calls.clear()
            for tape in self._tapes.values():
                tape.sound = [False] * len(tape.units)
            self.singles.clear()
            self.promoted.clear()
        return all(
            self._calls.setdefault(item.wire_call_id or str(item.id), unit.sequence)
            == unit.sequence
            for item in unit.items
            if item.kind is ItemKind.TOOL_CALL
        )

    def tape(self, form: str) -> Tape:
        """The tape of a form."""
        return self._tapes.setdefault(form, Tape())

    def trim(self, first: EventSeq) -> None:
        """Let go of what stands far in front of the first unit of the request that is being built."""
        for tape in self._tapes.values():
            tape.trim(first)
        self.singles = {at: kept for at, kept in self.singles.items() if at >= first}

    def keep_shown(self, promoted: Collection[EventSeq], blocks: Collection[EventSeq]) -> None:
        """Let go of promoted units and blocks but for those that the request shows."""
        self.promoted = {at: self.promoted[at] for at in promoted if at in self.promoted}
        self.blocks = {at: self.blocks[at] for at in blocks if at in self.blocks}

    def unpaired(self, units: list[Unit]) -> list[Unit]:
        """Those of consecutive units that `paired` was not told of."""
        _, same = known_run(self._paired, units)
        self.serving.update(unit.sequence for unit in units[same:] if serves(unit))
        return units[same:]

    def served(self, units: Sequence[Unit]) -> dict[EventSeq, Served]:
        """What these units hold of tools that the provider runs, by their sequence; all others are forgotten."""
        kept, self._served = self._served, {}
        for unit in units:
            known = kept.get(unit.sequence)
            if known is None or (known[0] is not unit and known[0] != unit):
                known = (unit, served_in(unit))
            self._served[unit.sequence] = known
        return {at: found for at, (_, found) in self._served.items()}

    def paired(self, units: list[Unit]) -> None:
        """Remember units whose calls and results were found whole."""
        self._paired = units
