"""How often the old turn that a new directive is about is among the first three to be promoted.

    python -m bench.recall [--corpus DIR] [--files N] [--misses]

`tests/gates/test_recall_over_corpus.py` holds a part of the corpus to the target; here all of it is measured. The questions are
those of `bench.recall_set`; index and values are the product's own. A turn counts as promoted as the planner promotes: its
relevance or anaphora must be at least half of the best one's, and three turns are taken at most. Questions that only point back
are counted apart: they say nothing of the index.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

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
from ctxengine.engine.turns.relevance import Postings, values_of
from ctxengine.engine.turns.turn import Turn, turns_of

PROMOTED = 3
TARGET = 0.9
"""Share of the questions for which the right turn has to be among those."""


class Asked(NamedTuple):
    """One session: what it is asked, and what its turns are found by."""

    questions: Sequence[Question]
    terms: Sequence[TurnTerms]


@dataclass
class Tally:
    """How many questions were asked and how many found their turn, by kind."""

    asked: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    sessions: int = 0

    @property
    def total(self) -> int:
        """Questions but for those that only point back, which say nothing of the index."""
        return self.asked.total() - self.asked["back"]

    @property
    def share(self) -> float:
        """How many of them found their turn, of 1; 0 where nothing was asked."""
        return (self.found.total() - self.found["back"]) / self.total if self.total else 0.0

    @property
    def met(self) -> bool:
        """Whether both kinds of questions reach the target."""
        back = self.found["back"] >= TARGET * self.asked["back"]
        return bool(self.total) and self.share >= TARGET and back

    def ask(self, session: Asked) -> list[tuple[Question, list[int]]]:
        """Ask everything; gives the questions that did not find their turn, with what they found."""
        self.sessions += bool(session.questions)
        missed = []
        indexes = {
            n: MemoryPostings(session.terms[:n]) for n in {q.closed for q in session.questions}
        }
        for question in session.questions:
            best = promoted(question, indexes[question.closed])
            self.asked[question.kind] += 1
            self.found[question.kind] += question.turn in best
            if question.turn not in best:
                missed.append((question, best))
        return missed


def asked_of(log: SessionLog, *, most_turns: int | None = None) -> Asked:
    """The questions to a session and its index; none to a short one.

    Args:
        most_turns: turns behind these are left aside, as if the session had not come so far.
    """
    turns = turns_in(log)[:most_turns]
    questions = questions_of(turns)
    return Asked(questions, terms_in(log, turns) if questions else [])


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


def promoted(question: Question, postings: Postings) -> list[int]:
    """The turns that the planner would promote first, best first.

    Args:
        postings: of the turns that are closed when it is asked.
    """
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
    tally = Tally()
    for name, log in transcripts(folder, options.files):
        for question, best in tally.ask(asked_of(log)):
            if options.misses:
                sys.stdout.write(
                    f"{name} {question.kind}: wants {question.turn}, got {best}: {question.text[:160]!r}\n"
                )
    return _report(tally)


def _report(tally: Tally) -> int:
    for kind in KINDS:
        if tally.asked[kind]:
            found, asked = tally.found[kind], tally.asked[kind]
            sys.stdout.write(f"{kind:10} {found:5} of {asked:5}  {found / asked:.1%}\n")
    if not tally.total:
        sys.stdout.write("No session is long enough to be asked about.\n")
        return 2
    sys.stdout.write(
        f"{tally.total} questions about older turns, `back` left out, in {tally.sessions} sessions: the right turn is among"
        f" the first {PROMOTED} promoted for {tally.share:.1%} (target {TARGET:.0%})\n"
    )
    return 0 if tally.met else 1


if __name__ == "__main__":
    raise SystemExit(main())
