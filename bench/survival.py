"""What survives three compactions of real transcripts, by kind: a measurement, not a test.

    python -m bench.survival [--corpus DIR] [--budget TOKENS] [--files N]

Each transcript is read into a log, cut into three parts that are compacted one after another (the third pass merges the
first two
summaries), and the request's row 9 is searched for the exact facts of what the summariser may read: the words of the
user and the
model, and call arguments. Results of tools are reachable through their pointers and are counted apart.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.compaction.compactor import Compactor
from ctxengine.engine.compaction.extract import numbers_in, paths_in, quoted_in
from ctxengine.engine.compaction.packet import CompactionResult, Packet
from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.compaction.source import argument_texts
from ctxengine.engine.compaction.summarise import LedgerSummariser, Range, Surroundings
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind, TextPart, Unit
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.engine.trust.levels import Trust

ROOT = Path(__file__).resolve().parents[1]
PASSES = 3
_DECISION = re.compile(
    r"\b(?:decid\w+|chose|choose|instead of|let'?s|we(?:'ll| will| should)|I(?:'ll| will)|root cause|because|fix(?:ed)?)\b",
    re.IGNORECASE,
)
"""A judge of its own: the summariser does not look for these words."""


def transcripts(folder: Path, most: int) -> Iterator[tuple[str, MemoryLog]]:
    """Logs of the corpus's sessions that are long enough to be compacted."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
    django.setup()
    from ctxengine.engine.errors import EngineError
    from ctxengine.engine.importers.registry import read
    from ctxengine.service.clock import utc_now
    from ctxengine.service.reconstruct import Reconstruction

    found = 0
    for path in sorted(entry for entry in folder.rglob("*") if entry.is_file()):
        if path.suffix not in {".json", ".jsonl", ".yaml", ".traj"} or found >= most:
            continue
        try:
            transcript = read(path.read_bytes().decode("utf-8", "surrogatepass"), name=path.name)
        except (EngineError, ValueError):
            continue
        for foreign in transcript.sessions:
            made = Reconstruction(
                "00000000-0000-4000-8000-000000000000",  # type: ignore[arg-type]
                foreign,
                file_sha256="0" * 64,
                format="bench",
                now=utc_now(),
            )
            log = made.run().log
            if log.head().units >= 4 * PASSES and log.head().tokens >= 4_000:
                found += 1
                yield path.name, log


def facts_of(units: list[Unit]) -> dict[str, set[str]]:
    """The exact facts in what a summariser may read."""
    facts: dict[str, set[str]] = {
        kind: set() for kind in ("decisions", "paths", "commands", "numbers", "quoted strings")
    }
    for unit in units:
        for item in unit.items:
            if item.kind is ItemKind.TOOL_CALL:
                texts = argument_texts(item.arguments)
                words = " ".join(text for key, text in texts if key == texts[0][0]) if texts else ""
                facts["commands"].add(" ".join(words.split())[:80])
                for _, text in texts:
                    facts["paths"] |= set(paths_in(text[:4_000]))
            elif item.trust in {Trust.USER, Trust.MODEL} and item.kind is not ItemKind.TOOL_RESULT:
                text = "\n".join(part.text for part in item.parts if isinstance(part, TextPart))
                facts["paths"] |= set(paths_in(text))
                facts["numbers"] |= {n.split()[-1] for n in numbers_in(text)}
                facts["quoted strings"] |= set(quoted_in(text))
                if item.kind is ItemKind.ASSISTANT_MESSAGE:
                    sentences = re.split(r"(?<=[.!?])\s+|\n+", text)
                    facts["decisions"] |= {
                        " ".join(s.split())[:60]
                        for s in sentences
                        if _DECISION.search(s) and len(s) > 20
                    }
    return {kind: {fact for fact in found if fact} for kind, found in facts.items()}


def compacted(log: MemoryLog, body_tokens: int) -> tuple[tuple[Packet, ...], int, int]:
    """Row 9 after three passes; tokens before and after."""
    counter = counter_for("anthropic", "claude-sonnet-4-6")
    head = EventSeq(log.head().sequence + 1)
    starts = [unit.sequence for unit in log.units(EventSeq(1), head)]
    bounds = [starts[len(starts) * part // PASSES] for part in range(1, PASSES)] + [head]
    texts = SessionTexts(log, head)
    compactor = Compactor(
        units=log,
        summariser=LedgerSummariser(counter),
        counter=counter,
        policy=BudgetPolicy(),
        surroundings=Surroundings(texts.untrusted, texts.brought),
    )
    packets: tuple[Packet, ...] = ()
    results: dict[int, CompactionResult] = {}
    first, before = EventSeq(1), log.head().tokens
    for number, below in enumerate(bounds, start=1):
        tokens = log.at(below).tokens - log.at(first).tokens
        outcome = compactor.compact(Range(first, below, tokens), packets, results, body_tokens)
        made: dict[tuple[int, int, int], CompactionResult] = {
            (r.first_sequence, r.replaced_through_sequence, r.depth): r for r in outcome.made
        }
        packets = tuple(
            packet if packet.sequence else packet._replace(sequence=EventSeq(number * 10 + place))
            for place, packet in enumerate(outcome.packets)
        )
        for packet in packets:
            result = made.get((packet.first, packet.through, packet.depth))
            if result is not None:
                results[packet.sequence] = result
        first = below
    return packets, before, sum(packet.tokens for packet in packets)


def main() -> int:
    """Print survival by kind, as counts and shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=None)
    parser.add_argument("--budget", type=int, default=120_000, help="body of the request (tokens)")
    parser.add_argument("--files", type=int, default=200)
    options = parser.parse_args()
    folder = options.corpus or Path(
        os.environ.get("CTX_CORPUS_DIR") or ROOT.parent / "shared" / "corpus"
    )
    if not folder.is_dir():
        print("No corpus beside this checkout; set CTX_CORPUS_DIR or pass --corpus.")
        return 1
    kept: Counter[str] = Counter()
    total: Counter[str] = Counter()
    sessions = before = after = pointers = 0
    for _, log in transcripts(folder, options.files):
        units = list(log.units(EventSeq(1), EventSeq(log.head().sequence + 1)))
        packets, was, now = compacted(log, options.budget)
        text = "\n".join(packet.text for packet in packets)
        folded = " ".join(text.split())
        for kind, facts in facts_of(units).items():
            total[kind] += len(facts)
            kept[kind] += sum(fact in folded for fact in facts)
        sessions, before, after = sessions + 1, before + was, after + now
        pointers += text.count("[elided]")
    print(
        f"{sessions} sessions, {before:,} tokens of history, {after:,} after {PASSES} compactions"
    )
    for kind in total:
        share = kept[kind] / total[kind] if total[kind] else 1.0
        print(f"  {kind:<15} {kept[kind]:>7,} of {total[kind]:>7,}  {share:6.1%}")
    print(f"  pointers to everything else: {pointers:,} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
