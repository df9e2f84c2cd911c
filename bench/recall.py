"""How often the old turn that a new directive is about is among the first three to be promoted: a measurement, not a test.

    python -m bench.recall [--corpus DIR] [--files N] [--misses]

The questions are those of `bench.recall_set`; index and values are the product's own. A turn counts as promoted as the planner
promotes: its relevance or anaphora must be at least half of the best one's, and three turns are taken at most. Questions that
only point back are counted apart: they say nothing of the index.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.recall_set import KINDS, Question, questions_of
from bench.survival import ROOT, transcripts
from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.derive import text_of_item
from ctxengine.engine.history.working_set import MIN_PROMOTION
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.turns.index_text import index_terms
from ctxengine.engine.turns.own_words import own_words
from ctxengine.engine.turns.postings import MemoryPostings, TurnTerms
from ctxengine.engine.turns.relevance import values_of
from ctxengine.engine.turns.turn import Turn, turns_of

PROMOTED = 3
TARGET = 0.9


def turns_in(log: SessionLog) -> tuple[Turn, ...]:
    """All turns of a log."""
    return turns_of(log.units(EventSeq(1), EventSeq(log.head().sequence + 1)))


def terms_in(log: SessionLog, turns: Sequence[Turn]) -> list[TurnTerms]:
    """What each turn is found by, as the close of a turn records it."""
    if not turns:
        return []
    texts = SessionTexts(log, EventSeq(turns[-1].last + 1))
    return [
        TurnTerms(
            turn.number,
            index_terms(
                turn, asked="\n".join(text_of_item(item) for item in turn.directives), words=words
            ),
        )
        for turn, words in zip(turns, own_words(turns, texts), strict=True)
    ]


def promoted(question: Question, terms: Sequence[TurnTerms]) -> list[int]:
    """The turns that the planner would promote first, best first."""
    postings = MemoryPostings(terms[: question.closed])
    values = values_of(question.text, newest=question.closed, postings=postings)
    worth = [n for n, v in values.items() if max(v.relevance, v.anaphora) >= MIN_PROMOTION]
    return sorted(worth, key=lambda n: (-values[n].value, -n))[:PROMOTED]


def main(arguments: Iterable[str] | None = None) -> int:
    """Print the shares; 0 when the target is met, 1 when it is missed, 2 without a corpus."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--corpus", type=Path, default=None)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--misses", action="store_true", help="print what was not found")
    options = parser.parse_args(None if arguments is None else list(arguments))
    default = os.environ.get("CTX_CORPUS_DIR") or ROOT.parent / "shared" / "corpus"
    folder = options.corpus or Path(default)
    if not folder.is_dir():
        sys.stdout.write(f"No corpus at {folder}; name one with --corpus or CTX_CORPUS_DIR.\n")
        return 2
    asked: Counter[str] = Counter()
    found: Counter[str] = Counter()
    sessions = 0
    for name, log in transcripts(folder, options.files):
        turns = turns_in(log)
        questions = questions_of(turns)
        terms = terms_in(log, turns) if questions else []
        sessions += bool(questions)
        for question in questions:
            best = promoted(question, terms)
            asked[question.kind] += 1
            found[question.kind] += question.turn in best
            if options.misses and question.turn not in best:
                sys.stdout.write(
                    f"{name} {question.kind}: wants {question.turn}, got {best}: {question.text[:160]!r}\n"
                )
    return _report(sessions, asked, found)


def _report(sessions: int, asked: Counter[str], found: Counter[str]) -> int:
    for kind in KINDS:
        if asked[kind]:
            sys.stdout.write(
                f"{kind:10} {found[kind]:5} of {asked[kind]:5}  {found[kind] / asked[kind]:.1%}\n"
            )
    total = asked.total() - asked["back"]
    if not total:
        sys.stdout.write("No session is long enough to be asked about.\n")
        return 2
    share = (found.total() - found["back"]) / total
    sys.stdout.write(
        f"{total} questions about older turns, `back` left out, in {sessions} sessions: the right turn is among the first"
        f" {PROMOTED} promoted for {share:.1%} (target {TARGET:.0%})\n"
    )
    return 0 if share >= TARGET and found["back"] >= TARGET * asked["back"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
