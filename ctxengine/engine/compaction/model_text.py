"""What stands beside a model's prose in a summary: the facts that must survive word for word, and the pointers.

The prose may tell; it never replaces. What the user asked, paths, literal names, numbers and the pointers of everything that
was not read come from the ledger, exactly as a summary without a model has them (design 7.2 and 7.9).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxengine.engine.canonical import digest_of
from ctxengine.engine.compaction.deterministic import Entry, Sections, write_summary
from ctxengine.engine.compaction.elision import ElidedSpan, pointer_line
from ctxengine.engine.compaction.packet import CompactionResult
from ctxengine.engine.compaction.source import Statement, SummarySource
from ctxengine.engine.ids import parse_item_id
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view

PROSE_SHARE = 0.55
"""Share of a summary's budget that a model's prose may take."""

_LEAST_FACTS_TOKENS = 16
_POINTER = re.compile(r"\[elided\][^\n]*")


def prose_budget(budget_tokens: int) -> int:
    """Tokens of a summary's budget that its prose may take."""
    return max(1, int(budget_tokens * PROSE_SHARE))


def clean_prose(text: str, elided: Sequence[ElidedSpan]) -> str:
    """A model's prose as it may be kept: no character a wire refuses, and no pointer but those of the source.

    Where untrusted text was repeated, the source has pointers that name no tool.
    """
    plain = [span.model_copy(update={"tool": ""}) for span in elided if span.tool]
    known = {pointer_line(span) for span in (*elided, *plain)}

    def kept(found: re.Match[str]) -> str:
        return next((line for line in known if found[0].startswith(line)), "")

    return _POINTER.sub(kept, model_view(text)).strip()


def completed(
    prose: str,
    sections: Sections,
    elided: Sequence[ElidedSpan],
    *,
    counter: TokenCounter,
    budget_tokens: int,
    told_through: int | None = None,
) -> str:
    """A summary's text: the prose, then exact facts and pointers in what is left of the budget.

    Args:
        told_through: last event that the prose tells of, where there are later ones: of these, what was said and called stands
            among the facts. None: it tells of all.
    """
    left = budget_tokens - counter.text(f"{prose}\n")
    if left < _LEAST_FACTS_TOKENS:
        return prose
    untold = {
        name: tuple(entry for entry in entries if _is_behind(entry, told_through))
        for name, entries in (("said", sections.said), ("calls", sections.calls))
    }
    exact = sections.model_copy(update=untold)
    facts = write_summary(exact, elided, counter=counter, budget_tokens=left)
    return f"{prose}\n{facts}" if facts else prose


def _is_behind(entry: Entry, told_through: int | None) -> bool:
    return told_through is not None and parse_item_id(entry.item_id).sequence > told_through


def told_so_far(result: CompactionResult) -> str:
    """What a summariser reads of a summary: its prose, with the facts behind it where these tell of more than the prose."""
    whole = result.prose_through in {0, result.replaced_through_sequence}
    return result.summary[: result.prose_chars or None] if whole else result.summary


def source_of_summaries(results: Sequence[CompactionResult]) -> SummarySource:
    """Neighbouring summaries as a summariser may read them to make one of them: their prose, nothing else."""
    spans = {span.item_id: span for result in results for span in result.elided}
    source = SummarySource(
        first_sequence=results[0].first_sequence,
        through_sequence=results[-1].replaced_through_sequence,
        turns=sum(result.turns for result in results),
        units=sum(result.units for result in results),
        tokens=sum(result.tokens_after for result in results),
        statements=tuple(
            Statement(
                item_id=f"{result.first_sequence}.0",
                trust=Trust.MODEL,
                text=told_so_far(result),
                final=True,
            )
            for result in results
        ),
        calls=(),
        elided=tuple(sorted(spans.values(), key=lambda span: span.item)),
        source_event_ids=tuple(sorted({i for r in results for i in r.source_event_ids})),
        retold=True,
    )
    return source.model_copy(update={"digest": digest_of([r.source_sha256 for r in results])})
