"""A summary's source in the pieces that a summariser's window admits, cut where a unit is complete (design 7.14; field note 7).

Each record is one line of JSON, so that nothing said in it can pass for the prompt around it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ctxengine.engine.compaction.elision import pointer_line
from ctxengine.engine.compaction.extract import head_and_tail
from ctxengine.engine.compaction.source import CallNote, Statement, SummarySource
from ctxengine.engine.ids import EventSeq, parse_item_id
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.trust.levels import Trust

_SHORTENED_CHARS = 400
"""A text of a unit too large for any window is cut to no fewer characters than this."""


class UnitRecords(NamedTuple):
    """The records of one unit: what one event said or called, and pointers for what came back."""

    sequence: EventSeq
    records: tuple[dict[str, Any], ...]


class Fragment(NamedTuple):
    """Neighbouring units, whole, as lines for a summariser."""

    units: tuple[UnitRecords, ...]
    lines: tuple[str, ...]
    tokens: int

    @property
    def text(self) -> str:
        """The lines as they are sent."""
        return "\n".join(self.lines)


def fragments_of(
    source: SummarySource, counter: TokenCounter, limit_tokens: int
) -> tuple[Fragment, ...]:
    """The source in order, each fragment within the limit; a unit beyond it has its texts shortened, visibly.

    Args:
        counter: of the model that will read them.
        limit_tokens: most tokens of one fragment.
    """
    return packed(tuple(_units(source)), counter, limit_tokens)


def packed(
    units: Sequence[UnitRecords], counter: TokenCounter, limit_tokens: int
) -> tuple[Fragment, ...]:
    """As few fragments as hold these units; also for splitting one again that a provider found too long."""
    made: list[Fragment] = []
    kept: list[UnitRecords] = []
    lines: list[str] = []
    tokens = 0
    for unit in units:
        more, cost = _fitting(unit, counter, limit_tokens)
        if kept and tokens + cost > limit_tokens:
            made.append(Fragment(tuple(kept), tuple(lines), tokens))
            kept, lines, tokens = [], [], 0
        kept.append(unit)
        lines += more
        tokens += cost
    if kept:
        made.append(Fragment(tuple(kept), tuple(lines), tokens))
    return tuple(made)


def _units(source: SummarySource) -> Iterator[UnitRecords]:
    """Records by the unit they belong to: what is elided stands with what was said before it."""
    said: dict[int, list[dict[str, Any]]] = {}
    for statement in source.statements:
        said.setdefault(_sequence(statement.item_id), []).append(_told(statement))
    for call in source.calls:
        said.setdefault(_sequence(call.item_id), []).append(_called(call))
    elided: dict[int, list[dict[str, Any]]] = {}
    starts = sorted(said)
    if source.earlier:
        notes = {"by": "notes", "text": source.earlier}
        yield UnitRecords(EventSeq(source.first_sequence - 1), (notes,))
    for span in source.elided:
        if span.trust_level is Trust.PLATFORM:
            continue
        before = bisect_right(starts, span.event_id)
        place = starts[before - 1] if before else span.event_id
        record = {"id": span.item_id, "elided": pointer_line(span)}
        elided.setdefault(place, []).append(record)
    for sequence in sorted({*said, *elided}):
        records = (*said.get(sequence, ()), *elided.get(sequence, ()))
        yield UnitRecords(EventSeq(sequence), records)


def _sequence(item_id: str) -> int:
    return parse_item_id(item_id).sequence


def _told(statement: Statement) -> dict[str, Any]:
    user = statement.trust is Trust.USER
    speaker = "user" if user else "parent run" if statement.instruction else "assistant"
    record: dict[str, Any] = {"id": statement.item_id, "by": speaker}
    if not statement.answered:
        record["open"] = True
    record["text"] = statement.text
    return record


def _called(call: CallNote) -> dict[str, Any]:
    return {
        "id": call.item_id,
        "by": "assistant",
        "calls": call.name,
        "with": [[member, text] for member, text in call.texts],
    }


def _fitting(unit: UnitRecords, counter: TokenCounter, limit: int) -> tuple[list[str], int]:
    """A unit's lines within a limit: its texts are halved until they fit or say nothing any more."""
    records = list(unit.records)
    lines, tokens = _lines(records, counter)
    longest = max((len(text) for text in _texts(records)), default=0)
    while tokens > limit and longest > _SHORTENED_CHARS:
        longest = max(_SHORTENED_CHARS, longest // 2)
        records = [_shortened(record, longest) for record in records]
        lines, tokens = _lines(records, counter)
    while tokens > limit and len(records) > 1:
        records = records[: len(records) // 2]
        lines, tokens = _lines([*records, {"left_out": "more of this step"}], counter)
    return lines, tokens


def _lines(records: Iterable[dict[str, Any]], counter: TokenCounter) -> tuple[list[str], int]:
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    return lines, sum(counter.text(line) + 1 for line in lines)


def _texts(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    for record in records:
        if "text" in record:
            yield record["text"]
        for _, text in record.get("with", ()):
            yield text


def _shortened(record: dict[str, Any], chars: int) -> dict[str, Any]:
    shorter = dict(record)
    if "text" in record:
        shorter["text"] = head_and_tail(record["text"], chars)
    if "with" in record:
        shorter["with"] = [[name, head_and_tail(text, chars)] for name, text in record["with"]]
    return shorter
