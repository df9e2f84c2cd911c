"""Making one summary, and merging two: pure, from a range of the log to a result or a refusal (design 6, 7.2 and 7.9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxengine.engine.canonical import digest_of
from ctxengine.engine.compaction.deterministic import (
    COMPACTOR_VERSION,
    Sections,
    merged,
    sections_of,
    write_summary,
)
from ctxengine.engine.compaction.elision import ElidedSpan
from ctxengine.engine.compaction.model_text import clean_prose, completed, source_of_summaries
from ctxengine.engine.compaction.packet import (
    FRAME_TOKENS,
    MAX_DEPTH,
    CompactionResult,
)
from ctxengine.engine.compaction.parrot import Brought, Untrusted
from ctxengine.engine.compaction.soundness import Refusal, SummaryAnswer, too_large, unsound
from ctxengine.engine.compaction.source import SummarySource, source_of
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Unit, unit_of
from ctxengine.engine.ports import Summariser, TokenCounter, UnitSource
from ctxengine.engine.redaction.redact import redact


@dataclass(frozen=True, slots=True)
class Range:
    """What a cut would drop: units that start in [first, below)."""

    first: EventSeq
    below: EventSeq
    tokens: int
    """What these units cost a request now."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a summary needs to know beside its range."""

    untrusted: Callable[[EventSeq], Iterable[Untrusted]]
    """All untrusted text of the session before a sequence, oldest first."""
    brought: Brought
    constraints: tuple[str, ...] = ()
    open_tasks: tuple[str, ...] = ()
    tools: frozenset[str] = frozenset()
    """Names of tools that the plan pins, and pointers may tell."""


class LedgerSummariser:
    """The embedded summariser: no model, no network, equal sources give equal texts."""

    version = COMPACTOR_VERSION

    def __init__(self, counter: TokenCounter) -> None:
        """Count with the session's own counter."""
        self._counter = counter

    def summarise(self, source: SummarySource, budget_tokens: int) -> SummaryAnswer:
        """A summary of at most `budget_tokens`."""
        text = write_summary(
            sections_of(source), source.elided, counter=self._counter, budget_tokens=budget_tokens
        )
        return SummaryAnswer(text)


def read_source(
    log: UnitSource,
    wanted: Range,
    surroundings: Surroundings,
    *,
    excluded: frozenset[str] = frozenset(),
) -> SummarySource:
    """The range as a summariser may see it. What an operator excluded is not in it."""
    units = log.units(wanted.first, wanted.below)
    if excluded:
        units = [left for unit in units if (left := _without(unit, excluded)) is not None]
    return source_of(
        units,
        first=wanted.first,
        through=EventSeq(wanted.below - 1),
        tokens=wanted.tokens,
        untrusted=surroundings.untrusted(wanted.below),
        brought=surroundings.brought,
        tools=surroundings.tools,
    )


def _without(unit: Unit, excluded: frozenset[str]) -> Unit | None:
    """The unit without items that were left out; None when nothing of it stays."""
    kept = [item for item in unit.items if str(item.id) not in excluded]
    return unit if len(kept) == len(unit.items) else unit_of(kept) if kept else None


def summarise(
    source: SummarySource,
    surroundings: Surroundings,
    *,
    summariser: Summariser,
    counter: TokenCounter,
    budget_tokens: int,
) -> CompactionResult | Refusal:
    """Summarise one range, or say why not. Nothing unsound comes back as a result."""
    if not source.source_event_ids:
        return Refusal.NOTHING_TO_COMPACT
    answer = summariser.summarise(source, max(1, budget_tokens - FRAME_TOKENS))
    sections = sections_of(source)
    written = written_from(
        answer, sections, source.elided, counter=counter, budget_tokens=budget_tokens
    )
    if isinstance(written, Refusal):
        return written
    after = counter.text(written.text) + FRAME_TOKENS
    refusal = too_large(source.tokens, after)
    if refusal is not None:
        return refusal
    return CompactionResult(
        kind=written.kind,
        summary=written.text,
        first_sequence=source.first_sequence,
        replaced_through_sequence=source.through_sequence,
        source_event_ids=source.source_event_ids,
        elided=source.elided,
        constraints=surroundings.constraints,
        open_tasks=surroundings.open_tasks,
        turns=source.turns,
        units=source.units,
        tokens_before=source.tokens,
        tokens_after=after,
        compactor_version=summariser.version,
        masked=source.masked + written.masked,
        source_sha256=source.digest,
        sections=sections,
        prose_chars=written.prose_chars,
    )


class Written(NamedTuple):
    """The text of a summary that may be installed."""

    text: str
    kind: str
    masked: int
    prose_chars: int = 0
    prose_through: int = 0


def written_from(
    answer: SummaryAnswer,
    sections: Sections,
    elided: Sequence[ElidedSpan],
    *,
    counter: TokenCounter,
    budget_tokens: int,
) -> Written | Refusal:
    """The text to install, or why there is none; a model's prose is redacted and completed."""
    refusal = unsound(answer)
    if refusal is not None:
        return refusal
    if not answer.by_model:
        clean = redact(answer.text)
        return Written(clean.text, "deterministic", clean.masked)
    clean = redact(clean_prose(answer.text, elided))
    if not clean.text:
        return Refusal.EMPTY
    text = completed(
        clean.text,
        sections,
        elided,
        counter=counter,
        budget_tokens=max(1, budget_tokens - FRAME_TOKENS),
    )
    return Written(text, "model", clean.masked, len(clean.text))


def merge(
    parts: Sequence[tuple[int, CompactionResult]],
    surroundings: Surroundings,
    *,
    counter: TokenCounter,
    budget_tokens: int,
    summariser: Summariser | None = None,
) -> CompactionResult | Refusal:
    """One summary in the place of neighbouring ones: union of sources, of pointers and of constraints.

    Args:
        parts: (event, result) of each, oldest first; they must tile their range.
        summariser: tells their prose as one; None writes the merged sections down.
    """
    if len(parts) < 2:
        return Refusal.NOTHING_TO_COMPACT
    results = [result for _, result in parts]
    depth = max(result.depth for result in results) + 1
    if depth > MAX_DEPTH:
        return Refusal.DEPTH_EXCEEDED
    sections = merged([result.sections for result in results])
    elided = _elided(results)
    room = max(1, budget_tokens - FRAME_TOKENS)
    if summariser is None:
        answer = SummaryAnswer(write_summary(sections, elided, counter=counter, budget_tokens=room))
    else:
        answer = summariser.summarise(source_of_summaries(results), room)
    written = written_from(answer, sections, elided, counter=counter, budget_tokens=budget_tokens)
    if isinstance(written, Refusal):
        return written
    before = sum(result.tokens_after for result in results)
    after = counter.text(written.text) + FRAME_TOKENS
    if after >= before:
        return Refusal.NO_PROGRESS
    return CompactionResult(
        kind=written.kind,
        summary=written.text,
        first_sequence=results[0].first_sequence,
        replaced_through_sequence=results[-1].replaced_through_sequence,
        source_event_ids=tuple(sorted({i for r in results for i in r.source_event_ids})),
        elided=elided,
        constraints=_union([*(r.constraints for r in results), surroundings.constraints]),
        open_tasks=surroundings.open_tasks,
        depth=2,
        merges=tuple(sequence for sequence, _ in parts),
        turns=sum(result.turns for result in results),
        units=sum(result.units for result in results),
        tokens_before=before,
        tokens_after=after,
        compactor_version=COMPACTOR_VERSION if summariser is None else summariser.version,
        masked=sum(result.masked for result in results) + written.masked,
        source_sha256=digest_of([result.source_sha256 for result in results]),
        sections=sections,
        prose_chars=written.prose_chars,
    )


def _elided(results: Sequence[CompactionResult]) -> tuple[ElidedSpan, ...]:
    spans = {span.item_id: span for result in results for span in result.elided}
    return tuple(sorted(spans.values(), key=lambda span: span.item))


def _union(groups: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for group in groups for text in group))


__all__ = [
    "LedgerSummariser",
    "Range",
    "Sections",
    "Surroundings",
    "Written",
    "merge",
    "read_source",
    "summarise",
    "written_from",
]
