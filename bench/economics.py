"""What the engine's requests cost under a provider's cache rules, on the referee's transcripts.

    python -m bench.economics [--engine suffix] [--turns 60] [--seeds 5] [--budget 100000] [--low-water 0.25] [--lab]

With `--lab`, every engine and policy of the replay lab on the same transcripts, with the lab's own rules and counts. Without,
each step's real request body is split into the blocks a provider sees, with the markers it carries, and handed to the referee's
cache simulator (`../shared/bench/cachesim.py`), beside its own sliding window on the same transcript. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import statistics
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bench import referee
from bench.lab import lab_ready

if TYPE_CHECKING:
    from ctxengine.service.replay.reading import Reading

MODEL = "claude-sonnet-4-6"
STEP_GAP_S, TURN_GAP_S = 12, 60
"""What the lab assumes where a transcript states no times, and the referee too."""
_AT = datetime(2026, 7, 1, tzinfo=UTC)


def blocks_of(body: bytes) -> list[tuple[str, str | None]]:
    """The cacheable blocks of an Anthropic body in cache order, with the life of the marker on each."""
    data = json.loads(body)
    found = [*data.get("tools", ()), *data.get("system", ())]
    for message in data["messages"]:
        content = message["content"]
        found.extend([content] if isinstance(content, str) else content)
    out = []
    for block in found:
        marker = block.pop("cache_control", None) if isinstance(block, dict) else None
        text = json.dumps(block, separators=(",", ":"), ensure_ascii=False)
        out.append((text, marker.get("ttl", "5m") if marker else None))
    return out


def replay(
    groups_by_turn: list[list[list[dict[str, Any]]]], options: argparse.Namespace
) -> dict[str, Any]:
    """Run one transcript through an engine in the lab, and its bodies through the referee's Anthropic cache."""
    from ctxengine.service.replay.cell import task_of
    from ctxengine.service.replay.figures import Cell, CellTotals
    from ctxengine.service.replay.models import lab_model
    from ctxengine.service.replay.own import Play
    from ctxengine.service.replay.wanted import ReplaySettings

    cachesim, model = referee.module("cachesim"), lab_model(MODEL)
    settings = ReplaySettings(
        budget=options.budget, low_water=options.low_water, turn_gap=options.gap_turn
    )
    task = task_of(
        reading_of_groups(groups_by_turn, "made"), options.engine, model, settings, at=_AT
    )
    cell = Cell(CellTotals(options.engine, model.name, model.provider, options.budget, "5m"))
    provider, usage = cachesim.Anthropic(1024), cachesim.Usage()
    cuts = 0
    for played in Play(task, cell).steps():
        if played.step is None:
            raise SystemExit(f"Step {played.figures.number} was refused: {played.figures.refused}")
        built = played.step.built
        body = built.renderer.body(built.prefix, built.fragments, built.params, built.markers)
        provider.request(blocks_of(body), played.figures.at, usage)
        cuts += played.figures.compactions
    return {
        "requests": usage.requests,
        "cached_ratio": usage.read / usage.total,
        "cost_ratio": usage.cost / usage.total,
        "cost": usage.cost,
        "mean_request": usage.total // usage.requests,
        "peak": max(total for total, _, _ in usage.history),
        "misses": usage.misses,
        "cuts": cuts,
    }


def reading_of_groups(groups_by_turn: list[list[list[dict[str, Any]]]], name: str) -> Reading:
    """One of the referee's transcripts, read as the lab reads any file."""
    from ctxengine.engine.importers.registry import read
    from ctxengine.service.replay.from_transcript import source_of_transcript
    from ctxengine.service.replay.reading import reading_of

    text = chat_of(groups_by_turn, referee.module("workload").SYSTEM)
    (foreign,) = read(text, name=name).sessions
    return reading_of(source_of_transcript(foreign, name=name))


def lab_rows(*, turns: int, seeds: int, budget: int, scale: float = 2.5) -> list[dict[str, Any]]:
    """Every engine and policy of the lab on the referee's transcripts: medians over seeds, one row each.

    The transcripts state no times, so the lab assumes 12 s between steps and 60 s between turns, as the referee does.
    """
    from ctxengine.service.replay.cell import replay_cell
    from ctxengine.service.replay.engines import LAB_ENGINES
    from ctxengine.service.replay.models import lab_model
    from ctxengine.service.replay.wanted import ReplaySettings

    workload, model = referee.module("workload"), lab_model(MODEL)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in LAB_ENGINES}
    for seed in range(1, seeds + 1):
        reading = reading_of_groups(workload.turns(turns, seed=seed, scale=scale), f"made-{seed}")
        rows = {
            name: replay_cell(
                reading, name, model, ReplaySettings(budget=budget), keep_steps=False
            ).totals
            for name in LAB_ENGINES
        }
        sliding = rows["sliding_window"].weight
        for name, totals in rows.items():
            found[name].append(totals.as_json() | {"of_sliding": totals.weight / sliding})
    return [_median(name, rows) for name, rows in found.items()]


def chat_of(groups_by_turn: list[list[list[dict[str, Any]]]], system: str) -> str:
    """The referee's groups as one chat request with its tools."""
    tools = json.loads(referee.module("cachesim").tools_text())
    functions = [
        {"name": t["name"], "description": t["description"], "parameters": t["input_schema"]}
        for t in tools
    ]
    messages = [message for groups in groups_by_turn for group in groups for message in group]
    return json.dumps(
        {
            "model": "gpt-5.4",
            "messages": [{"role": "system", "content": system}, *messages],
            "tools": [{"type": "function", "function": function} for function in functions],
        }
    )


def _median(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    figures = [key for key, value in rows[0].items() if isinstance(value, int | float)]
    medians = {key: round(statistics.median(row[key] for row in rows), 4) for key in figures}
    return {"engine": name} | medians


def print_lab(options: argparse.Namespace) -> None:
    """One JSON line per engine and policy."""
    for row in lab_rows(
        turns=options.turns, seeds=options.seeds, budget=options.budget, scale=options.scale
    ):
        print(json.dumps(row))


def main() -> None:
    """Print one line per seed and the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=100_000)
    parser.add_argument("--scale", type=float, default=2.5)
    parser.add_argument("--low-water", type=float, default=0.25)
    parser.add_argument("--gap-turn", type=float, default=TURN_GAP_S)
    parser.add_argument("--engine", default="suffix")
    parser.add_argument("--lab", action="store_true", help="all engines and policies of the lab")
    options = parser.parse_args()
    if not referee.present():
        raise SystemExit(2)
    with lab_ready():
        if options.lab:
            print_lab(options)
        else:
            print_priced(options)


def print_priced(options: argparse.Namespace) -> None:
    """One JSON line per seed, then their medians."""
    cachesim, turns = referee.module("cachesim"), referee.module("workload").turns
    rows = []
    for seed in range(1, options.seeds + 1):
        groups = turns(options.turns, seed=seed, scale=options.scale)
        ours = replay(groups, options)
        window = cachesim.run(
            "b sliding window",
            "anthropic 5m",
            groups,
            options.budget,
            cachesim.tools_text(),
            STEP_GAP_S,
            options.gap_turn,
        )
        ours["of_sliding"] = ours["cost"] / window["cost"]
        rows.append(ours)
        print(json.dumps({"seed": seed} | {k: round(v, 4) for k, v in ours.items()}), flush=True)
    medians = {key: round(statistics.median(row[key] for row in rows), 4) for key in rows[0]}
    print(json.dumps({"median": medians}))


if __name__ == "__main__":
    main()
