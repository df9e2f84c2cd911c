"""The benchmark report: `bench/report.md`, made by one command (design 12, issue of the replay lab).

    python -m bench.report [--corpus DIR] [--out FILE] [--budgets 100000,32000] [--models A,B] [--speed] [--turns 60]

Policies are compared by the replay lab on the shipped samples, on the corpus beside the repository where there is one, and
on the referee's made transcripts. `--speed` adds the figures of the engine, of REST and of imports, each measured by its own
script against the floor of the same run; they mean something on a quiet machine alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

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
gone. *Over* counts requests larger than the budget that a policy sent all the same."""
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
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="ctxengine-bench-") as folder:
        _set_up(Path(folder))
        text = "\n".join(_report(options, _samples(Path(folder)))) + "\n"
    options.out.write_text(text, encoding="utf-8")
    print(f"Written: {options.out}")
    return 0


def _set_up(folder: Path) -> None:
    """Let settings be read without an instance: the lab needs no database."""
    os.environ["CTX_DATA_DIR"] = str(folder)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
    import django

    django.setup()


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
        yield from _replayed("The corpus of real transcripts", files, options)
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
        f"{os.cpu_count()} cores, Python {platform.python_version()}; {versions}.",
        "",
        _READING,
        "",
        "| policy | what it does |",
        "|---|---|",
        *(f"| `{engine.name}` | {engine.words} |" for engine in LAB_ENGINES.values()),
        "",
    )


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _replayed(title: str, files: Sequence[Path], options: argparse.Namespace) -> Iterator[str]:
    from ctxengine.service.replay.engines import LAB_ENGINES
    from ctxengine.service.replay.figures import merged
    from ctxengine.service.replay.many import Matrix, replay_files
    from ctxengine.service.replay.models import lab_model
    from ctxengine.service.replay.wanted import ReplaySettings

    matrix = Matrix(
        engines=tuple(LAB_ENGINES),
        models=tuple(lab_model(name) for name in options.models.split(",")),
        settings=tuple(ReplaySettings(budget=int(n)) for n in options.budgets.split(",")),
        at=datetime.now(UTC),
    )
    began, cells, refused = time.monotonic(), [], 0
    for done, file in enumerate(replay_files(files, matrix, processes=options.processes), start=1):
        refused += bool(file.refused)
        cells += [cell for _, found in file.sessions for cell in found]
        print(f"\r{title}: {done}/{len(files)} files", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    rows = [line.as_json() for line in merged(cells)]
    sessions = max((row["sessions"] for row in rows), default=0)
    yield from (
        f"## {title}",
        "",
        f"{len(files) - refused} files, {sessions} conversations, {len(matrix)} cells each, in "
        f"{time.monotonic() - began:,.0f} s.",
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
            "| policy | cost $ | per token | cached | mean | peak | cuts | whole | reach | gone | over | refused |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        )
        for row in group:
            cost = "-" if row["cost"] is None else f"{row['cost']:.3f}"
            yield (
                f"| `{row['engine']}` | {cost} | {row['cost_ratio']:.3f} | "
                f"{row['cached_ratio']:.1%} | {row['mean_tokens']:,} | {row['peak_tokens']:,} | "
                f"{row['compactions']:,} | {row['fidelity']:.1%} | {row['reachable']:,} | "
                f"{row['gone']:,} | {row['over_budget']:,} | {row['refused']:,} |"
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
            yield f"- `{row['engine']}` is beaten by `{peer['engine']}`: {_reason(row, peer)}."
    yield ""


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
    if peer["cached_ratio"] > row["cached_ratio"]:
        told.append(
            f"more of them is cached ({peer['cached_ratio']:.1%} against {row['cached_ratio']:.1%})"
        )
    return "; ".join(told) or "by a little"


def _made(options: argparse.Namespace) -> Iterator[str]:
    from bench import economics, referee

    yield from ("## The referee's made transcripts", "")
    if not referee.present():
        yield from ("Their scripts are not beside this checkout.", "")
        return
    rows = economics.lab_rows(turns=options.turns, seeds=options.seeds, budget=100_000)
    yield (
        f"{options.turns} turns, medians of {options.seeds} seeds, 100,000 tokens, claude-sonnet-4-6, 12 s between steps "
        "and 60 s between turns. *Of sliding* is the whole cost against the sliding window's. Nothing said there is used "
        "again, so that fidelity says nothing."
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
