"""The benchmark report: `bench/report.md`, made by one command (design 12, issue of the replay lab).

    python -m bench.report [--corpus DIR] [--out FILE] [--budgets 100000,32000] [--models A,B] [--speed] [--turns 60]
                           [--cells FILE]

Policies are compared by the replay lab on the shipped samples, on the corpus beside the repository where there is one, and
on the referee's made transcripts. `--speed` adds the figures of the engine, of REST and of imports, each measured by its own
script against the floor of the same run; they mean something on a quiet machine alone. `--cells` keeps what was replayed, and
goes on from it where a run was ended before its report was written.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.lab import lab_ready

ROOT = Path(__file__).resolve().parents[1]
MODELS = "claude-sonnet-4-6,gpt-5.4"
BUDGETS = "100000,32000"
_PACKAGES = ("Django", "pydantic", "genai-prices", "psycopg", "langchain-core", "haystack-ai")
_READING = """\
Every policy sees the same transcripts, the same budget, the same cache rules and the same prices. No provider is called: the
answers are the original's, and what a model would have said otherwise is not part of it. *Cost* is the input at list prices;
*per token* is what an input token cost on average, in uncached ones; *cached* is the share read from the cache. *Whole* is the
share of facts (paths, commands, numbers of four characters and more, quoted strings, constraints) that an answer uses, that
stood earlier in the transcript, and that stood word for word in the request; *reach* counts those of which the request named
the item that holds them, for one recall; *gone* counts the rest. A step that cannot be built is refused, and its facts count as
gone, and nothing is paid for it; why is told below each table. *Over* counts requests larger than the budget that a policy sent
all the same. *Ms* is what the lab itself needed for a step on this machine: building it, where the engine is ours, and judging
its facts."""
_WHY_REFUSED = {
    "budget_exceeded: history": "what the open turn itself says, its calls and answers, is larger than the room, with all its "
    "results as pointers; the specification lets nothing of an open turn be left out",
    "budget_exceeded: user_input": "the user's newest message alone is larger than the room; it is never shortened",
    "budget_exceeded: tool_results": "the newest results alone are larger than the room",
    "wire_invalid": "the provider would not take such a request: its own tool stands open in the transcript",
    "prompt_too_long": "the request is larger than the model's window",
    "nothing_left": "no user's message fits, and the library gives nothing back",
}
"""What a refusal means, by how the lab counts it."""
_FIXED = (
    "platform",
    "agent",
    "persona",
    "tools",
    "deferred_index",
    "skill_catalog",
    "snapshot",
    "runtime",
    "prefix",
)
_SPEED = (
    ("Engine: step k+1", ("bench.assemble", "--steps", "60")),
    ("REST: append, assemble, answer", ("bench.rest", "--steps", "60")),
    ("Import of transcripts", ("bench.importing",)),
)


def main(argv: list[str] | None = None) -> int:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "report.md")
    parser.add_argument("--budgets", default=BUDGETS)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--turns", type=int, default=60, help="turns of a made transcript")
    parser.add_argument("--seeds", type=int, default=3, help="made transcripts; 0 for none")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--without", nargs="*", default=(), metavar="NAME", help="files of the corpus to leave out"
    )
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--cells", type=Path, help="keep results here, one JSON line per file")
    options = parser.parse_args(argv)
    with lab_ready() as folder:
        text = "\n".join(_report(options, _samples(folder))) + "\n"
    options.out.write_text(text, encoding="utf-8")
    print(f"Written: {options.out}")
    return 0


def _samples(folder: Path) -> list[Path]:
    """The shipped samples as files, the made one among them."""
    from ctxengine.service.sample_data.long_session import long_session

    shipped = sorted((ROOT / "ctxengine/service/sample_data").glob("*.json*"))
    made = folder / "long_session.openai_chat.json"
    made.write_text(long_session(), encoding="utf-8")
    return [*shipped, made]


def _report(options: argparse.Namespace, samples: Sequence[Path]) -> Iterator[str]:
    began = time.monotonic()
    yield from _head(options)
    yield from _replayed("The shipped samples", samples, options)
    corpus = options.corpus or Path(os.environ.get("CTX_CORPUS_DIR") or ROOT / "../shared/corpus")
    if corpus.is_dir():
        files = sorted(path for path in corpus.rglob("*") if path.is_file())
        kept = [path for path in files if path.name not in options.without]
        yield from _replayed("The corpus of real transcripts", kept, options)
        if len(kept) < len(files):
            left_out = ", ".join(f"`{path.name}`" for path in files if path not in kept)
            yield from (f"**Left out of this run by hand: {left_out}.**", "")
    else:
        yield from (
            "## The corpus of real transcripts",
            "",
            "There is none beside this checkout.",
            "",
        )
    if options.seeds:
        yield from _made(options)
    if options.speed:
        yield from _speed()
    yield f"Made in {time.monotonic() - began:,.0f} s."


def _head(options: argparse.Namespace) -> Iterator[str]:
    from ctxengine.service.replay.engines import LAB_ENGINES

    versions = ", ".join(f"{name} {version}" for name in _PACKAGES if (version := _version(name)))
    yield from (
        "# Benchmark report",
        "",
        f"Made {datetime.now(UTC):%Y-%m-%d} by `python -m bench.report` on {platform.machine()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}; {versions}. {_load()}",
        "",
        _READING,
        "",
        "| policy | what it does |",
        "|---|---|",
        *(f"| `{engine.name}` | {engine.words} |" for engine in LAB_ENGINES.values()),
        "",
    )


def _load() -> str:
    """How busy the machine is: figures of time mean nothing without it."""
    waiting = os.getloadavg()[0]
    cores = os.cpu_count() or 1
    busy = (
        "shared with other work: no figure of time can be relied on"
        if waiting > cores
        else "otherwise idle"
    )
    return f"Load {waiting:.1f} on {cores} cores at the start; the machine was {busy}."


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _replayed(title: str, files: Sequence[Path], options: argparse.Namespace) -> Iterator[str]:
    from bench.replayed import replayed
    from ctxengine.service.replay.engines import LAB_ENGINES
    from ctxengine.service.replay.figures import merged
    from ctxengine.service.replay.many import Matrix
    from ctxengine.service.replay.models import lab_model
    from ctxengine.service.replay.wanted import ReplaySettings

    matrix = Matrix(
        engines=tuple(LAB_ENGINES),
        models=tuple(lab_model(name) for name in options.models.split(",")),
        settings=tuple(ReplaySettings(budget=int(n)) for n in options.budgets.split(",")),
        at=datetime.now(UTC),
    )
    began = time.monotonic()
    cells, refused = replayed(title, files, matrix, processes=options.processes, keep=options.cells)
    rows = [line.as_json() for line in merged(cells)]
    sessions = max((row["sessions"] for row in rows), default=0)
    yield from (
        f"## {title}",
        "",
        f"{len(files) - refused} files, {sessions} conversations, {len(matrix)} cells each; "
        f"{sum(row['seconds'] for row in rows):,.0f} s of replay, {time.monotonic() - began:,.0f} s on the clock.",
        "",
    )
    yield from _tables(rows)


def _tables(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """One table for each model and budget, and what has to be said of it."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["model"], row["budget"]), []).append(row)
    for (model, budget), group in groups.items():
        yield from (
            f"### {model}, {budget:,} tokens",
            "",
            "| policy | cost $ | per token | cached | mean | peak | cuts | whole | reach | gone | over | refused | ms |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        )
        for row in group:
            cost = "-" if row["cost"] is None else f"{row['cost']:.3f}"
            yield (
                f"| `{row['engine']}` | {cost} | {row['cost_ratio']:.3f} | "
                f"{row['cached_ratio']:.1%} | {row['mean_tokens']:,} | {row['peak_tokens']:,} | "
                f"{row['compactions']:,} | {row['fidelity']:.1%} | {row['reachable']:,} | "
                f"{row['gone']:,} | {row['over_budget']:,} | {row['refused']:,} | "
                f"{1000 * row['seconds'] / max(1, row['steps'] + row['refused']):.1f} |"
            )
        yield ""
        yield from _verdicts(group)


def _verdicts(group: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Where a peer keeps as many facts for less than an engine of ours, said in words with the reason that the figures give."""
    from ctxengine.service.replay.engines import OWN_ENGINES

    for row in group:
        if row["engine"] not in OWN_ENGINES:
            continue
        beaten = [
            peer
            for peer in group
            if peer["engine"] not in OWN_ENGINES
            and peer["fidelity"] >= row["fidelity"]
            and _weight(peer) < _weight(row)
        ]
        if not beaten:
            yield f"- `{row['engine']}`: no peer keeps as many facts whole for less."
        for peer in beaten:
            yield (
                f"- `{row['engine']}` costs {_weight(row) / _weight(peer) - 1:.0%} more than `{peer['engine']}`, which keeps "
                f"{peer['fidelity']:.1%} whole against {row['fidelity']:.1%}: {_reason(row, peer)}."
            )
    yield from _refusals(group)
    yield ""


def _refusals(group: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Which steps could not be built, and why."""
    for row in group:
        for kind, times in row["refusals"].items():
            why = _WHY_REFUSED.get(kind) or _WHY_REFUSED.get(kind.split(":")[0], "see its code")
            yield f"- `{row['engine']}` refused {times:,} steps as `{kind}`: {why}."
        if row["skipped_sessions"]:
            yield (
                f"- `{row['engine']}` left out {row['skipped_sessions']:,} conversations whose prompt and tools do not fit."
            )


def _weight(row: dict[str, Any]) -> float:
    return float(row["cost_ratio"]) * int(row["input_tokens"])


def _reason(row: dict[str, Any], peer: dict[str, Any]) -> str:
    told = []
    if row["refused"] > peer["refused"]:
        more = row["refused"] - peer["refused"]
        told.append(
            f"{more} steps are refused here and sent there, over the budget or cut inside a turn"
        )
    if peer["over_budget"] > row["over_budget"]:
        told.append(f"it sends {peer['over_budget']} requests over the budget")
    if peer["mean_tokens"] < row["mean_tokens"]:
        told.append(
            f"its requests are smaller ({peer['mean_tokens']:,} against {row['mean_tokens']:,} tokens)"
        )
    ours, theirs = (_fixed(entry) for entry in (row, peer))
    if ours > theirs and peer.get("by_class"):
        told.append(
            f"{ours - theirs:,} tokens of each request here are policy, framing and control tools, which the peer does not have"
        )
    if peer["cached_ratio"] > row["cached_ratio"]:
        told.append(
            f"more of them is cached ({peer['cached_ratio']:.1%} against {row['cached_ratio']:.1%})"
        )
    return "; ".join(told) or "by a little"


def _fixed(row: dict[str, Any]) -> int:
    """Tokens of a mean request that every request has, whatever the history: ours by class, a peer's prefix."""
    counted = row.get("by_class", {})
    return int(sum(counted.get(name, 0) for name in _FIXED) // max(1, row["steps"]))


def _made(options: argparse.Namespace) -> Iterator[str]:
    from bench import economics, referee

    yield from ("## The referee's made transcripts", "")
    if not referee.present():
        yield from ("Their scripts are not beside this checkout.", "")
        return
    rows = economics.lab_rows(turns=options.turns, seeds=options.seeds, budget=100_000)
    asked = (
        "at least 96 % cached, 0.146 per token at most, 0.32 of sliding, 50,000 tokens at the mean"
    )
    yield (
        f"{options.turns} turns, medians of {options.seeds} seeds, 100,000 tokens, claude-sonnet-4-6, 12 s between steps "
        "and 60 s between turns. *Of sliding* is the whole cost against the sliding window's. Nothing said there is used "
        f"again, so that fidelity says nothing. Asked of each engine of ours: {asked}."
    )
    yield from (
        "",
        "| policy | cached | per token | of sliding | mean | peak | cuts |",
        "|---|--:|--:|--:|--:|--:|--:|",
    )
    for row in rows:
        yield (
            f"| `{row['engine']}` | {row['cached_ratio']:.1%} | {row['cost_ratio']:.3f} | "
            f"{row['of_sliding']:.2f} | {row['mean_tokens']:,.0f} | {row['peak_tokens']:,.0f} | "
            f"{row['compactions']:,.0f} |"
        )
    yield ""
    yield from _made_verdicts(rows)


def _made_verdicts(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What each engine of ours reaches of what is asked."""
    from ctxengine.service.replay.engines import OWN_ENGINES

    for row in rows:
        if row["engine"] not in OWN_ENGINES:
            continue
        missed = [
            words
            for words, met in (
                (f"cached {row['cached_ratio']:.1%}", row["cached_ratio"] >= 0.96),
                (f"{row['cost_ratio']:.3f} per token", row["cost_ratio"] <= 0.146),
                (f"{row['of_sliding']:.2f} of sliding", row["of_sliding"] <= 0.32),
                (f"mean {row['mean_tokens']:,.0f} tokens", row["mean_tokens"] >= 50_000),
            )
            if not met
        ]
        told = f"misses with {', '.join(missed)}" if missed else "meets all four"
        yield f"- `{row['engine']}` {told}."
    yield ""


def _speed() -> Iterator[str]:
    yield from ("## Speed", "")
    for title, command in _SPEED:
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
        )
        told = done.stdout.strip() or done.stderr.strip() or "It printed nothing."
        yield from (f"### {title}", "", "```", told, "```", "")


if __name__ == "__main__":
    sys.exit(main())
