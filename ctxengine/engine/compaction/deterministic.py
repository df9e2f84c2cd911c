"""The summariser that needs no model: what was asked, said, called and named, taken from the ledger as it stands.

Equal sources give equal summaries. Each section gets a share of the budget, newest first; what it leaves goes to the next ones.
Pointers stand for everything that was not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.compaction.elision import ElidedSpan, pointer_line, rest_line
from ctxengine.engine.compaction.extract import (
    file_names_in,
    first_sentence,
    head_and_tail,
    last_paragraph,
    numbers_in,
    one_line,
    paths_in,
    quoted_in,
    without_pointers,
)
from ctxengine.engine.compaction.source import SummarySource
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.trust.levels import Trust

COMPACTOR_VERSION = "ledger-summary@2"
"""Since `@2` pointers name the tool."""

_ASKED_CHARS = 800
_FINAL_CHARS = 500
_SAID_CHARS = 200
_CALL_CHARS = 160
_ARGUMENT_CHARS = 4_000
_ENTRY_OVERHEAD_TOKENS = 1
_LEAST_CHARS = 40


class Entry(BaseModel):
    """One line of a section, with the item it was taken from."""

    model_config = ConfigDict(frozen=True)

    item_id: str
    text: str
    tokens: int = 0
    """What its line takes in its section, by the counter that the sections name; 0: not counted yet."""


class Sections(BaseModel):
    """Everything a summary may tell, before the budget; what merging starts from.

    Lines are counted once: a summary that grows from a stored one counts what is new (`counted`).
    """

    model_config = ConfigDict(frozen=True)

    counter: str = ""
    """Label of the counter that counted lines; empty where none is counted."""
    asked: tuple[Entry, ...] = ()
    said: tuple[Entry, ...] = ()
    calls: tuple[Entry, ...] = ()
    paths: tuple[Entry, ...] = ()
    numbers: tuple[Entry, ...] = ()
    quoted: tuple[Entry, ...] = ()


SHARES: tuple[tuple[str, str, float], ...] = (
    ("asked", "The user asked (word for word where short; answered unless marked open):", 0.22),
    ("paths", "Paths and addresses:", 0.28),
    ("said", "The assistant said:", 0.34),
    ("calls", "Calls made:", 0.6),
    ("quoted", "Named literally:", 0.6),
    ("numbers", "Numbers:", 1.0),
)
"""(section, heading, share of what the sections before it left)."""

_POINTER_SHARE = 0.12
_PARENT_MARK = "(the parent run, not the user) "
_INLINE = frozenset({"paths", "quoted", "numbers"})


def sections_of(source: SummarySource) -> Sections:
    """The sections of one range."""
    asked, said = [], []
    for statement in source.statements:
        if statement.trust is Trust.USER or statement.instruction:
            mark = _PARENT_MARK if statement.instruction else ""
            mark += "" if statement.answered else "(open) "
            text = mark + head_and_tail(" ".join(statement.text.split()), _ASKED_CHARS)
            asked.append(Entry(item_id=statement.item_id, text=text))
        elif statement.final:
            opening = first_sentence(statement.text, _SAID_CHARS)
            closing = last_paragraph(statement.text, _FINAL_CHARS)
            both = closing if opening in closing else f"{opening} … {closing}"
            said.append(Entry(item_id=statement.item_id, text=both))
        else:
            text = first_sentence(statement.text, _SAID_CHARS)
            said.append(Entry(item_id=statement.item_id, text=text))
    texts = [(s.item_id, without_pointers(s.text)) for s in source.statements]
    arguments = [
        (call.item_id, without_pointers(text[:_ARGUMENT_CHARS]))
        for call in source.calls
        for _, text in call.texts
    ]
    return Sections(
        asked=tuple(asked),
        said=tuple(entry for entry in said if entry.text),
        calls=_once(
            Entry(item_id=call.item_id, text=_call_text(call.name, call.texts))
            for call in source.calls
        ),
        paths=_once(
            [*_found(paths_in, [*texts, *arguments]), *_found(file_names_in, texts)],
        ),
        numbers=_found(numbers_in, texts),
        quoted=_found(quoted_in, texts),
    )


def merged(parts: Sequence[Sections]) -> Sections:
    """The sections of neighbouring ranges as one, older ones first. Counts are kept where one counter made them all."""
    labels = {part.counter for part in parts if part.counter}
    if len(labels) > 1:
        parts = [_uncounted(part) for part in parts]
    together = {
        name: _once(entry for part in parts for entry in getattr(part, name))
        for name, _, _ in SHARES
    }
    return Sections(counter=labels.pop() if len(labels) == 1 else "", **together)


def counted(sections: Sections, counter: TokenCounter) -> Sections:
    """The same sections with every line counted; those that this counter has counted are not counted again."""
    known = sections.counter == counter.label
    entries: dict[str, tuple[Entry, ...]] = {
        name: tuple(
            entry
            if known and entry.tokens
            else entry.model_copy(update={"tokens": _cost(_line(name, entry), counter)})
            for entry in getattr(sections, name)
        )
        for name, _, _ in SHARES
    }
    return sections.model_copy(update={"counter": counter.label, **entries})


def _uncounted(sections: Sections) -> Sections:
    return sections.model_copy(
        update={
            name: tuple(entry.model_copy(update={"tokens": 0}) for entry in getattr(sections, name))
            for name, _, _ in SHARES
        }
    )


def write_summary(
    sections: Sections, elided: Sequence[ElidedSpan], *, counter: TokenCounter, budget_tokens: int
) -> str:
    """The text of a summary within a budget (tokens)."""
    foreign = [span for span in elided if span.trust_level is not Trust.PLATFORM]
    pointer_lines = _pointer_lines(foreign, counter, int(budget_tokens * _POINTER_SHARE))
    left = budget_tokens - sum(_cost(line, counter) for line in pointer_lines)
    blocks: list[str] = []
    known = sections.counter == counter.label
    for name, heading, share in SHARES:
        entries: tuple[Entry, ...] = getattr(sections, name)
        if not entries or left <= 0:
            continue
        block = _block(name, heading, entries, counter, int(left * share), known=known)
        if block:
            blocks.append(block)
            left -= _cost(block, counter)
    if pointer_lines:
        blocks.append("\n".join(pointer_lines))
    return "\n".join(blocks)


def _block(
    name: str,
    heading: str,
    entries: Sequence[Entry],
    counter: TokenCounter,
    budget: int,
    *,
    known: bool,
) -> str:
    """A section within its budget, the newest entries first; empty where nothing of it fits.

    Args:
        known: whether what is counted of the entries was counted by this counter.
    """
    kept: list[Entry] = []
    room = budget - _cost(heading, counter) - 8
    for entry in reversed(entries):
        cost = (entry.tokens if known else 0) or _cost(_line(name, entry), counter)
        if cost > room:
            continue
        kept.append(entry)
        room -= cost
    if not kept:
        kept = _cut_to_fit(name, entries[-1], counter, room)
    if not kept:
        return ""
    kept.reverse()
    more = len(entries) - len(kept)
    left_out = f" ({more} older or longer ones left out)" if more else ""
    joint = " | " if name in _INLINE else "\n"
    return f"{heading}{left_out}\n" + joint.join(_line(name, entry) for entry in kept)


def _cut_to_fit(name: str, entry: Entry, counter: TokenCounter, room: int) -> list[Entry]:
    """The newest entry, as much of it as there is room for; nothing where that would say nothing."""
    cut = entry
    while len(cut.text) > _LEAST_CHARS:
        cut = Entry(item_id=entry.item_id, text=one_line(cut.text, len(cut.text) // 2))
        if _cost(_line(name, cut), counter) <= room:
            return [cut]
    return []


def _line(name: str, entry: Entry) -> str:
    return entry.text if name in _INLINE else f"- {entry.item_id} {entry.text}"


def _cost(text: str, counter: TokenCounter) -> int:
    return counter.text(text) + _ENTRY_OVERHEAD_TOKENS


def _pointer_lines(elided: Sequence[ElidedSpan], counter: TokenCounter, budget: int) -> list[str]:
    """Newest pointers one by one, the rest in one line."""
    lines: list[str] = []
    room = budget
    place = len(elided)
    while place:
        line = pointer_line(elided[place - 1])
        cost = _cost(line, counter)
        if cost > room and place < len(elided):
            break
        lines.append(line)
        room -= cost
        place -= 1
    lines.reverse()
    return [rest_line(elided[:place]), *lines] if place else lines


def _call_text(name: str, texts: Sequence[tuple[str, str]]) -> str:
    """A call in short: its tool and its first argument, whose pieces may stand in a list."""
    if not texts:
        return name
    member = texts[0][0]
    words = " ".join(text for key, text in texts if key == member)
    return f"{name}: {one_line(words, _CALL_CHARS)}"


def _found(look: Callable[[str], list[str]], texts: Sequence[tuple[str, str]]) -> tuple[Entry, ...]:
    return _once(
        Entry(item_id=item_id, text=found) for item_id, text in texts for found in look(text)
    )


def _once(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Each text once, at its newest place."""
    newest: dict[str, Entry] = {}
    for entry in entries:
        newest.pop(entry.text, None)
        newest[entry.text] = entry
    return tuple(newest.values())
