"""The portable continuation note: made by a model where the provider compacts nothing itself (boundary spec; design 7.2, 7.9).

Its writer reads words of the user and the model, and typed pointers for everything else. An oversized source is read in ordered
fragments, each told together with the note so far; a partial note never stands in a request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, Protocol

from ctxengine.engine.boundary.failures import CompactionError
from ctxengine.engine.boundary.note_text import FRAME_TOKENS, gaps_of, gaps_text
from ctxengine.engine.boundary.work import Made, Work, checkpoint_for
from ctxengine.engine.compaction.fragments import Fragment, fragments_of
from ctxengine.engine.compaction.model_text import clean_prose
from ctxengine.engine.compaction.net_cost import is_progress
from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.compaction.source import SummarySource, source_of
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import unit_of
from ctxengine.engine.ports import SessionLog, TokenCounter
from ctxengine.engine.redaction.redact import redact

_NO_LIMIT = 1 << 40


class NoteAnswer(NamedTuple):
    """What the writer said."""

    text: str
    stop: str
    """`end` for a normal stop, `output_limit`, or another word."""
    calls: int = 0
    """Tool calls in it."""


class NotePort(Protocol):
    """A model that writes notes. Everything it raises is a `CompactionError`; see `NativePort`."""

    counter: TokenCounter
    """Counts as the writer's model does."""

    def room(self) -> int:
        """Tokens of one source that its window admits, by our count."""
        ...

    def count(self, lines: str) -> int | None:
        """Exact tokens of the whole prompt with these lines; None where nobody counts exactly."""
        ...

    def limit(self) -> int:
        """Tokens that its window admits for a whole prompt."""
        ...

    def kept(self, place: int, of: int) -> str | None:
        """The note after so many fragments, where an earlier attempt came so far."""
        ...

    def keep(self, place: int, of: int, text: str) -> None:
        """Remember it; it is no note yet."""
        ...

    def write(self, lines: str) -> NoteAnswer:
        """Ask for a note of these lines."""
        ...


def make_note(
    work: Work, log: SessionLog, port: NotePort, *, writer: Mapping[str, str] | None = None
) -> Made:
    """Write a note. One without some of its parts is taken, and says so wherever it stands.

    Args:
        writer: who writes, to be kept beside it.

    Raises:
        CompactionError: nothing was made.
    """
    source = source_for(work, log)
    before = work.note
    parts = _parts(work, source, port)
    note, calls = before, 0
    for place, part in enumerate(parts, start=1):
        kept = port.kept(place, len(parts)) if len(parts) > 1 else None
        if kept is None:
            kept = _sound(port.write(_lines(note, part)))
            calls += 1
            if place < len(parts):
                port.keep(place, len(parts), kept)
        note = kept
    text = redact(clean_prose(note, source.elided)).text
    if not text.strip():
        raise CompactionError("summary_empty")
    gaps = gaps_of(text)
    tokens = work.counter.text(text) + work.counter.text(gaps_text(gaps)) + FRAME_TOKENS
    if not is_progress(work.covered.tokens, tokens):
        raise CompactionError("not_reducing")
    point = replace(checkpoint_for(work, kind="note", tokens=tokens), gaps=gaps)
    return Made(point, text, items=1, counted="estimated", calls=calls, writer=writer)


def source_for(work: Work, log: SessionLog) -> SummarySource:
    """The newly covered units as a writer may read them; nothing untrusted is in it."""
    covered = work.covered
    texts = SessionTexts(log, covered.cut)
    out = frozenset(work.excluded)
    units = []
    for unit in covered.units:
        left = [item for item in unit.items if str(item.id) not in out]
        if left:
            units.append(unit if len(left) == len(unit.items) else unit_of(left))
    return source_of(
        units,
        first=EventSeq(covered.first),
        through=EventSeq(covered.cut - 1),
        tokens=sum(unit.tokens for unit in covered.units),
        untrusted=texts.untrusted(covered.cut),
        brought=texts.brought,
        tools=work.session.plan.pinned_names,
    )


def _parts(work: Work, source: SummarySource, port: NotePort) -> tuple[Fragment, ...]:
    """The source in one piece where an exact count or our own admits it, else in ordered fragments."""
    cap = work.session.plan.policy.summary_source_tokens
    whole = fragments_of(source, port.counter, _NO_LIMIT)
    if not whole:
        raise CompactionError("compaction_nothing_to_summarize")
    note_tokens = port.counter.text(work.note) if work.note else 0
    room = max(1, port.room() - note_tokens)
    if cap is not None and whole[0].tokens > cap:
        return fragments_of(source, port.counter, min(cap, room))
    exact = port.count(_lines(work.note, whole[0])) if whole[0].tokens <= 2 * room else None
    if exact is not None and exact <= port.limit():
        return whole
    room = min(room, cap) if cap is not None else room
    # What a fragment is told together with is at most one answer; it has its place beside each fragment.
    answer = work.session.plan.policy.summary_max_output_tokens if whole[0].tokens > room else 0
    return fragments_of(source, port.counter, max(1, room - answer, room // 4))


def _lines(note: str, part: Fragment) -> str:
    if not note:
        return part.text
    return json.dumps({"note_so_far": note}, ensure_ascii=False) + "\n" + part.text


def _sound(answer: NoteAnswer) -> str:
    if answer.stop == "output_limit":
        raise CompactionError("summary_output_limit")
    if answer.calls:
        raise CompactionError("summary_tool_call")
    if answer.stop != "end":
        raise CompactionError("summary_abnormal_stop")
    if not answer.text.strip():
        raise CompactionError("summary_empty")
    return answer.text.strip()
