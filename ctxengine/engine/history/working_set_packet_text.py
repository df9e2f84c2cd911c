"""What a packet of a working set says: taken from the ledger, or told by a model (capacity spec 4; design 7.2 and 7.9).

Either goes on from the longest stored packet over the same first turn where there is one, and so reads what is new alone: facts
and pointers are carried over by code, and prose that a model wrote stays in front of the facts of later turns.
"""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.canonical import digest_of
from ctxengine.engine.compaction.deterministic import (
    COMPACTOR_VERSION,
    Sections,
    counted,
    merged,
    sections_of,
    write_summary,
)
from ctxengine.engine.compaction.elision import ElidedSpan
from ctxengine.engine.compaction.model_text import completed, told_so_far
from ctxengine.engine.compaction.packet import FRAME_TOKENS, Added, CompactionResult
from ctxengine.engine.compaction.soundness import Refusal, SummaryAnswer, too_large
from ctxengine.engine.compaction.source import SummarySource
from ctxengine.engine.compaction.summarise import (
    LedgerSummariser,
    Range,
    Surroundings,
    Written,
    read_source,
    summarise,
    written_from,
)
from ctxengine.engine.history.working_set_packets import StoredPacket
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.ports import SessionLog, Summariser, TokenCounter
from ctxengine.engine.redaction.redact import redact

LEAST_TOLD_TOKENS = 240
"""A packet of fewer tokens has no room for prose beside its frame and its facts: it is taken from the ledger alone."""

_FACTS_BY = f" + {COMPACTOR_VERSION.partition('@')[0]}@"
"""What stands between the writer of a packet's prose and the version that took the facts behind it from the ledger."""
_TRIES = 4
_KEPT_SHARE = 0.75
"""Prose of a stored packet is kept while it takes no more than this share of the packet that grows from it."""


class PacketGround(NamedTuple):
    """What a packet is made from."""

    log: SessionLog
    wanted: Range
    """The range, with what it would cost as full turns."""
    grown_from: StoredPacket | None
    """The stored packet over the range's beginning, whose material is taken over."""
    surroundings: Surroundings
    counter: TokenCounter
    excluded: frozenset[str] = frozenset()
    """Items an operator left out."""

    def source(self) -> SummarySource:
        """The turns that no stored packet covers, as a summariser may see them."""
        first = self.wanted.first
        if self.grown_from is not None:
            first = EventSeq(self.grown_from.result.replaced_through_sequence + 1)
        new = Range(first, self.wanted.below, self.wanted.tokens)
        return read_source(self.log, new, self.surroundings, excluded=self.excluded)

    def digest(self, source: SummarySource) -> str:
        """Tells two states of all that a packet is made from apart."""
        if self.grown_from is None:
            return source.digest
        return digest_of([self.grown_from.result.source_sha256, source.digest])


def write_packet(ground: PacketGround, *, budget_tokens: int) -> CompactionResult | Refusal:
    """A packet without a model; nothing unsound comes back as a result.

    Args:
        budget_tokens: most tokens of the packet, its frame included.
    """
    source = ground.source()
    material = _material(ground, source)
    asked = budget_tokens
    for _ in range(_TRIES):
        made = _taken(ground, source, material, asked)
        if isinstance(made, Refusal) or made.tokens_after <= budget_tokens:
            return made
        # Entries are counted one by one, and together they may come to a little more.
        asked -= made.tokens_after - budget_tokens + 1
    return Refusal.OVER_BUDGET


def tell_packet(
    ground: PacketGround, *, summariser: Summariser, budget_tokens: int
) -> CompactionResult | Refusal:
    """A packet that a summariser tells: it reads the prose of the stored one and the words of the turns behind that.

    Whatever the summariser raises passes through.
    """
    source = ground.source()
    if not source.source_event_ids:
        return Refusal.NOTHING_TO_COMPACT
    earlier = told_so_far(ground.grown_from.result) if ground.grown_from is not None else ""
    answer = summariser.summarise(
        source.model_copy(update={"earlier": earlier}), max(1, budget_tokens - FRAME_TOKENS)
    )
    material = _material(ground, source)
    written = _fitted(answer, material, ground.counter, budget_tokens)
    if isinstance(written, Refusal):
        return written
    return _result(ground, source, material, written, version=summariser.version)


class _Material(NamedTuple):
    """All that a packet may tell: what the stored one could, and what is new."""

    sections: Sections
    elided: tuple[ElidedSpan, ...]
    own: Sections
    """The new ones among the sections."""


def _material(ground: PacketGround, source: SummarySource) -> _Material:
    own = counted(sections_of(source), ground.counter)
    if ground.grown_from is None:
        return _Material(own, source.elided, own)
    stored = ground.grown_from.result
    spans = {span.item_id: span for span in (*stored.elided, *source.elided)}
    return _Material(
        counted(merged([stored.sections, own]), ground.counter),
        tuple(sorted(spans.values(), key=lambda span: span.item)),
        own,
    )


def _fitted(
    answer: SummaryAnswer, material: _Material, counter: TokenCounter, budget_tokens: int
) -> Written | Refusal:
    """What is to be installed of an answer, within the packet's share."""
    asked = budget_tokens
    for _ in range(_TRIES):
        written = written_from(
            answer, material.sections, material.elided, counter=counter, budget_tokens=asked
        )
        if isinstance(written, Refusal):
            return written
        over = counter.text(written.text) + FRAME_TOKENS - budget_tokens
        if over <= 0:
            return written
        asked -= over + 1
    return Refusal.OVER_BUDGET


def _taken(
    ground: PacketGround, source: SummarySource, material: _Material, budget_tokens: int
) -> CompactionResult | Refusal:
    if ground.grown_from is None:
        made = summarise(
            source,
            ground.surroundings,
            summariser=LedgerSummariser(ground.counter),
            counter=ground.counter,
            budget_tokens=budget_tokens,
        )
        if isinstance(made, Refusal):
            return made
        return made.model_copy(update={"sections": material.sections})
    return _grown(ground, source, material, ground.grown_from.result, budget_tokens)


def _grown(
    ground: PacketGround,
    source: SummarySource,
    material: _Material,
    stored: CompactionResult,
    budget_tokens: int,
) -> CompactionResult | Refusal:
    """The stored packet's material and the new turns' as one text; nothing is summarised twice."""
    sections, elided, _ = material
    room = max(1, budget_tokens - FRAME_TOKENS)
    prose = stored.summary[: stored.prose_chars]
    if prose and ground.counter.text(prose) <= room * _KEPT_SHARE:
        through = stored.prose_through or stored.replaced_through_sequence
        text = completed(
            prose,
            sections,
            elided,
            counter=ground.counter,
            budget_tokens=room,
            told_through=through,
        )
        facts = redact(text[len(prose) :])
        written = Written(prose + facts.text, stored.kind, facts.masked, len(prose), through)
        return _result(ground, source, material, written, version=_behind(stored.compactor_version))
    clean = redact(write_summary(sections, elided, counter=ground.counter, budget_tokens=room))
    if not clean.text.strip():
        return Refusal.EMPTY
    written = Written(clean.text, "deterministic", clean.masked)
    return _result(ground, source, material, written, version=COMPACTOR_VERSION)


def _behind(version: str) -> str:
    """Who wrote a text of which the beginning is kept."""
    prose, _, _ = version.partition(_FACTS_BY)
    return f"{prose}{_FACTS_BY}{COMPACTOR_VERSION.partition('@')[2]}"


def _result(
    ground: PacketGround,
    source: SummarySource,
    material: _Material,
    written: Written,
    *,
    version: str,
) -> CompactionResult | Refusal:
    after = ground.counter.text(written.text) + FRAME_TOKENS
    refusal = too_large(ground.wanted.tokens, after)
    if refusal is not None:
        return refusal
    stored = ground.grown_from.result if ground.grown_from is not None else None
    events = stored.source_event_ids if stored is not None else ()
    constraints = stored.constraints if stored is not None else ()
    return CompactionResult(
        kind=written.kind,
        summary=written.text,
        first_sequence=ground.wanted.first,
        replaced_through_sequence=ground.wanted.below - 1,
        source_event_ids=tuple(sorted({*events, *source.source_event_ids})),
        elided=material.elided,
        constraints=tuple(dict.fromkeys((*constraints, *ground.surroundings.constraints))),
        open_tasks=ground.surroundings.open_tasks,
        turns=source.turns + (stored.turns if stored is not None else 0),
        units=source.units + (stored.units if stored is not None else 0),
        tokens_before=ground.wanted.tokens,
        tokens_after=after,
        compactor_version=version,
        masked=source.masked + written.masked + (stored.masked if stored is not None else 0),
        source_sha256=ground.digest(source),
        sections=material.sections,
        prose_chars=written.prose_chars,
        prose_through=written.prose_through,
        grown_from=ground.grown_from.sequence if ground.grown_from is not None else 0,
        added=Added(
            source_event_ids=source.source_event_ids, elided=source.elided, sections=material.own
        )
        if ground.grown_from is not None
        else None,
    )
