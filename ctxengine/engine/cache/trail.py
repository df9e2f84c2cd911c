"""The places of a request where a cache entry can end, and how far they lie apart (providers.md 1.2, 1.3).

Two requests that share a place share every byte before it. Only the places that can matter are made: after the prefix,
after each stretch, and after each of the newest units; an older unit's end is out of every marker's reach.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind, Unit
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.stretch import Stretch
from ctxengine.engine.wire.base import Fragment, WireApi

_DIGITS = 32
_NEWEST = 64
_FRESH_ROWS = (11, 12, 13, 14)
_KEPT_PARTS = frozenset({"history", "kept", "pinned", "active"})
_NO_MESSAGE = (b'{"type":"function_call",', b'{"type":"reasoning"')


@dataclass(frozen=True, slots=True)
class Place:
    """The end of the prefix, of a stretch or of a unit."""

    digest: str
    """Chained: equal places mean equal requests up to here."""
    tokens: int
    """Raw counts of everything up to here."""
    positions: int
    """Cache positions (blocks, or ends of messages) up to here. Only differences mean anything; that to a place far
    back is a lower bound.
    """
    fragments: int = 0
    """Wire fragments up to here."""
    bare: str = ""
    """Chained without any reasoning: equal where a provider withholds it. Empty where none can be withheld."""


@dataclass(frozen=True, slots=True)
class Trail:
    """A request's places in wire order: the end of the tools where there are any, the prefix's end, what stands behind."""

    places: tuple[Place, ...]
    prefix: int
    """Index of the prefix's end."""
    stable: int
    """Index of the place up to which the next step repeats this request, where nothing is rewritten."""
    images: bool
    """Whether pictures stand in it, which decides about matching messages on Anthropic's cache."""
    lasting: int = 0
    """Index of the last place before anything that leaves with the run (fresh rows, reasoning): what the next one shares."""

    @property
    def end(self) -> Place:
        """The end of the request."""
        return self.places[-1]


class _End(NamedTuple):
    digest: str
    tokens: int
    fragments: int
    bare: str


def trail_of(request: ModelRequest) -> Trail:
    """The places of a built request."""
    api = request.renderer.api
    images = api is WireApi.ANTHROPIC and any(
        stretch.totals.images for stretch in request.stretches if stretch.form == "whole"
    )
    walk = _Walk(request, images=images)
    for stretch in request.stretches:
        walk.pass_by(stretch)
    prefix = int(bool(request.prefix.tools))
    places = _positioned(walk.ends, request, api)
    return Trail(places, prefix, walk.stable, images, walk.lasting or 0)


class _Walk:
    """Goes along the stretches and notes the ends of what may be found again."""

    def __init__(self, request: ModelRequest, *, images: bool) -> None:
        plan = request.plan
        self._rows = {row.row: row.tokens for row in request.manifest.rows}
        self.tokens = plan.prefix_tokens
        self.fragments = 0
        self.ends: list[_End] = []
        # Responses alone says when it withholds reasoning; what it then reads is the request without it.
        self.bare = hashlib.sha256() if request.renderer.api is WireApi.OPENAI_RESPONSES else None
        model = f"{plan.provider}/{plan.model}/"
        if request.prefix.tools:
            self.chain = hashlib.sha256(f"{model}{request.prefix.tools!r}".encode())
            self._note(self._rows.get(5, 0), 0)
        self.chain = hashlib.sha256(f"{model}{plan.wire_prefix_sha256}".encode())
        self._add_bare(self.ends[0].digest if self.ends else "", plan.wire_prefix_sha256)
        self._note(self.tokens, 0)
        self.stable = len(self.ends) - 1
        self.lasting: int | None = None
        if images:
            # With its first picture, a request matches no message that was cached without one.
            self.chain.update(b"images")
        self._reasoning = _reasoning_tokens(request, self._rows)
        self._behind = sum(len(stretch.units) for stretch in request.stretches)

    def pass_by(self, stretch: Stretch) -> None:
        """Take one stretch along."""
        if self.lasting is None and self._leaves_with_the_run(stretch):
            self.lasting = len(self.ends) - 1
        if not stretch.units:
            self.chain.update(stretch.digests[0].encode())
            self._add_bare(stretch.digests[0])
            self.tokens += _block_tokens(stretch, self._rows)
            self.fragments += len(stretch.fragments)
            self._note(self.tokens, self.fragments)
            if stretch.row == 9 or stretch.part in _KEPT_PARTS:
                self.stable = len(self.ends) - 1
            return
        self._behind -= len(stretch.units)
        apart = self._reasoning.get(stretch.units[0].sequence, 0) if len(stretch.units) == 1 else 0
        first = max(0, len(stretch.units) - max(1, _NEWEST - self._behind))
        self.chain.update("".join(stretch.digests[:first]).encode())
        self._add_bare(*(_said(unit, stretch.form) for unit in stretch.units[:first]))
        before = stretch.bounds[0]
        for place in range(first, len(stretch.units)):
            self.chain.update(stretch.digests[place].encode())
            self._add_bare(_said(stretch.units[place], stretch.form))
            own = stretch.bounds[place + 1].since(before)
            tokens = own.pointer_tokens if stretch.form == "pointer" else own.tokens
            self._note(self.tokens + tokens + apart, self.fragments + own.fragments)
        self.tokens, self.fragments = self.ends[-1].tokens, self.ends[-1].fragments
        if stretch.part in _KEPT_PARTS:
            self.stable = len(self.ends) - 1

    def _leaves_with_the_run(self, stretch: Stretch) -> bool:
        if not stretch.units:
            return stretch.part == "sent" or stretch.row in _FRESH_ROWS
        return len(stretch.units) == 1 and stretch.units[0].sequence in self._reasoning

    def _note(self, tokens: int, fragments: int) -> None:
        bare = "" if self.bare is None else self.bare.hexdigest()[:_DIGITS]
        self.ends.append(_End(self.chain.hexdigest()[:_DIGITS], tokens, fragments, bare))

    def _add_bare(self, *texts: str) -> None:
        if self.bare is not None:
            self.bare.update("".join(texts).encode())


def _said(unit: Unit, form: str) -> str:
    """What tells a unit's content apart, whatever reasoning stands beside it."""
    return f"{unit.sequence}.{form}." + ".".join([item.digest for item in unit.items])


def _block_tokens(stretch: Stretch, rows: Mapping[int, int]) -> int:
    if stretch.row == 14:
        return sum(rows.get(row, 0) for row in _FRESH_ROWS)
    return stretch.totals.tokens or (rows.get(9, 0) if stretch.row == 9 else 0)


def _reasoning_tokens(request: ModelRequest, rows: Mapping[int, int]) -> dict[EventSeq, int]:
    """Tokens of replayed reasoning, shared out over the units that hold it: no unit's own count includes them."""
    held = len(request.opaque_units)
    if not held:
        return {}
    counted = request.plan.prefix_tokens
    for stretch in request.stretches:
        own = stretch.totals
        if not stretch.units:
            counted += _block_tokens(stretch, rows)
        else:
            counted += own.pointer_tokens if stretch.form == "pointer" else own.tokens
    rest = max(0, request.budget.request - counted)
    shares = dict.fromkeys(request.opaque_units, rest // held)
    shares[request.opaque_units[-1]] += rest % held
    return shares


def _positioned(ends: Sequence[_End], request: ModelRequest, api: WireApi) -> tuple[Place, ...]:
    """Places with their positions, counted backwards from the end: the newest exactly, older ones at least."""
    fewer = _joined_positions(request.stretches) if api is WireApi.ANTHROPIC else {}
    exact = ends[max(0, len(ends) - _NEWEST)].fragments
    places: list[Place] = []
    positions, at = 0, len(request.fragments)
    for end in reversed(ends):
        while at > max(end.fragments, exact):
            at -= 1
            positions -= _weight(request.fragments[at], api) - fewer.get(at, 0)
        positions -= at - end.fragments
        at = end.fragments
        places.append(Place(end.digest, end.tokens, positions, end.fragments, end.bare))
    if request.prefix.tools:
        tools = places[-1]
        places[-1] = replace(tools, positions=tools.positions - len(request.prefix.system))
    return tuple(reversed(places))


def _weight(fragment: Fragment, api: WireApi) -> int:
    if api is WireApi.ANTHROPIC:
        return fragment.positions
    return 0 if fragment.data.startswith(_NO_MESSAGE) else 1


def _joined_positions(stretches: Sequence[Stretch]) -> dict[int, int]:
    """By first fragment of a unit: positions it takes less, since neighbouring calls, and results, count as one."""
    found: dict[int, int] = {}
    base = 0
    for stretch in stretches:
        count = len(stretch.units)
        for place in range(max(0, count - _NEWEST), count):
            fewer = _joined(stretch.units[place])
            if fewer:
                found[base + stretch.bounds[place].since(stretch.bounds[0]).fragments] = fewer
        base += len(stretch.fragments)
    return found


def _joined(unit: Unit) -> int:
    calls = sum(item.kind is ItemKind.TOOL_CALL for item in unit.items)
    results = sum(item.kind is ItemKind.TOOL_RESULT for item in unit.items)
    return max(0, calls - 1) + max(0, results - 1)
