"""Lines of a growing summary are counted once, and what it says is what counting all of them would have made of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxengine.engine.compaction import deterministic as made
from ctxengine.engine.compaction.deterministic import (
    SHARES,
    Entry,
    Sections,
    counted,
    merged,
    write_summary,
)
from ctxengine.engine.compaction.elision import ElidedSpan
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.tokens.counter import FamilyCounter, counter_for
from ctxengine.engine.trust.levels import Trust
from tests.cast import PricedCounter

CLAUDE, GPT = counter_for("anthropic", "claude-sonnet-4-6"), counter_for("openai", "gpt-4o")
NAMES = [name for name, _, _ in SHARES]


class Noting(PricedCounter):
    """A counter that notes what it is asked."""

    def __init__(self, label: str = "noting@1") -> None:
        self.label = label
        self.asked: list[str] = []

    def text(self, text: str) -> int:
        self.asked.append(text)
        return super().text(text)


def plainly_written(
    sections: Sections, elided: Sequence[ElidedSpan], *, counter: TokenCounter, budget_tokens: int
) -> str:
    """How `ledger-summary@1` was written before counts were kept: every line is counted where it is looked at."""
    lines = made._pointer_lines(elided, counter, int(budget_tokens * made._POINTER_SHARE))
    left = budget_tokens - sum(counter.text(line) + 1 for line in lines)
    blocks: list[str] = []
    for name, heading, share in SHARES:
        entries: tuple[Entry, ...] = getattr(sections, name)
        if not entries or left <= 0:
            continue
        kept: list[Entry] = []
        room = int(left * share) - counter.text(heading) - 1 - 8
        for entry in reversed(entries):
            cost = counter.text(made._line(name, entry)) + 1
            if cost <= room:
                kept.insert(0, entry)
                room -= cost
        kept = kept or made._cut_to_fit(name, entries[-1], counter, room)
        if kept:
            more = len(entries) - len(kept)
            out = f" ({more} older or longer ones left out)" if more else ""
            joint = " | " if name in made._INLINE else "\n"
            blocks.append(f"{heading}{out}\n" + joint.join(made._line(name, e) for e in kept))
            left -= counter.text(blocks[-1]) + 1
    return "\n".join([*blocks, "\n".join(lines)] if lines else blocks)


_TEXTS = st.one_of(
    st.sampled_from(["It is done.", "src/a/b.py", "Copper costs 9,100", "the value 42"]),
    st.text(min_size=1, max_size=60),
    st.builds(lambda word, times: f"{word} " * times, st.sampled_from(["long", "ä", "水"]), st.integers(1, 90)),
)  # fmt: skip
_ENTRIES = st.lists(
    st.builds(
        lambda number, text: Entry(item_id=f"{number}.0", text=text), st.integers(1, 99), _TEXTS
    ),
    max_size=8,
).map(tuple)
_SECTIONS = st.builds(Sections, **dict.fromkeys(NAMES, _ENTRIES))
_ELIDED = st.lists(
    st.builds(
        lambda n: ElidedSpan(
            item_id=f"{n}.0", kind="tool.result", trust_level=Trust.EXTERNAL_UNTRUSTED, byte_length=n * 7, event_id=n
        ),
        st.integers(1, 999),
    ),
    max_size=5,
)  # fmt: skip


@settings(max_examples=40)
@given(st.lists(_SECTIONS, min_size=1, max_size=3), _ELIDED, st.integers(1, 900), st.data())
def test_counts_kept_change_no_byte(
    parts: list[Sections], elided: list[ElidedSpan], budget: int, data: st.DataObject
) -> None:
    counter = data.draw(st.sampled_from([CLAUDE, GPT]))
    wanted = plainly_written(merged(parts), elided, counter=counter, budget_tokens=budget)
    by = st.sampled_from([None, CLAUDE, GPT])
    kept = [part if (who := data.draw(by)) is None else counted(part, who) for part in parts]
    for sections in (merged(kept), counted(merged(kept), counter)):
        stored = Sections.model_validate_json(sections.model_dump_json())
        assert write_summary(stored, elided, counter=counter, budget_tokens=budget) == wanted


def grown(first: int, count: int) -> Sections:
    return Sections(
        asked=tuple(
            Entry(item_id=f"{n}.0", text=f"What of part {n}?") for n in range(first, first + count)
        ),
        said=tuple(
            Entry(item_id=f"{n}.1", text=f"Part {n} it is.") for n in range(first, first + count)
        ),
    )


@pytest.mark.parametrize("age", [20, 2_000])
def test_growing_counts_what_is_new(age: int) -> None:
    stored = counted(grown(0, age), Noting())
    counter = Noting()
    sections = counted(merged([stored, grown(age, 8)]), counter)
    assert len(counter.asked) == 16
    for budget in (400, 380):
        write_summary(sections, (), counter=counter, budget_tokens=budget)
    # What is left to count are headings and the blocks themselves.
    assert len(counter.asked) <= 16 + 2 * 4


def test_another_counter_counts_all_of_it_anew() -> None:
    stored = counted(grown(0, 5), Noting("other@1"))
    counter = Noting()
    again = counted(merged([stored, grown(5, 2)]), counter)
    assert len(counter.asked) == 14 and again.counter == "noting@1"
    mixed = merged([stored, counted(grown(5, 2), counter)])
    assert mixed.counter == "" and {e.tokens for e in (*mixed.asked, *mixed.said)} == {0}


def test_sections_of_older_events_are_read_as_not_counted() -> None:
    old = '{"asked":[{"item_id":"1.0","text":"What of it?"}],"said":[]}'
    sections = Sections.model_validate_json(old)
    assert (sections.counter, sections.asked[0].tokens) == ("", 0)
    assert isinstance(CLAUDE, FamilyCounter)
    assert counted(sections, CLAUDE).asked[0].tokens == CLAUDE.text("- 1.0 What of it?") + 1
