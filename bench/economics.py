"""What the engine's requests cost under a provider's cache rules, on the referee's transcripts.

    python -m bench.economics [--turns 60] [--seeds 5] [--budget 100000] [--low-water 0.25] [--lab]

With `--lab`, every engine and policy of the replay lab on the same transcripts, with the lab's own rules and counts. Without,
each step's real request body is split into the blocks a provider sees, with the markers it carries, and handed to the referee's
cache simulator (`../shared/bench/cachesim.py`), beside its own sliding window on the same transcript. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from typing import Any

from bench import referee


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
    """Run one transcript through the live engine and the referee's Anthropic cache."""
    from bench.live import LiveSession

    cachesim = referee.module("cachesim")
    session = LiveSession(
        instructions=referee.module("workload").SYSTEM,
        tools=json.loads(cachesim.tools_text()),
        budget=options.budget,
        low_water=options.low_water,
        reserve=1,
        margin=0.0,
    )
    provider, usage = cachesim.Anthropic(1024), cachesim.Usage()
    now, peak = 0.0, 0
    for groups in groups_by_turn:
        for group in groups:
            if group[0]["role"] == "assistant":
                provider.request(blocks_of(session.assemble(now).body), now, usage)
                peak = max(peak, usage.history[-1][0])
                now += options.gap_step
            session.append(group)
        now += options.gap_turn
    return {
        "requests": usage.requests,
        "cached_ratio": usage.read / usage.total,
        "cost_ratio": usage.cost / usage.total,
        "cost": usage.cost,
        "mean_request": usage.total // usage.requests,
        "peak": peak,
        "misses": usage.misses,
        "cuts": session.yields,
    }


def lab_rows(*, turns: int, seeds: int, budget: int, scale: float = 2.5) -> list[dict[str, Any]]:
    """Every engine and policy of the lab on the referee's transcripts: medians over seeds, one row each.

    The transcripts state no times, so the lab assumes 12 s between steps and 60 s between turns, as the referee does.
    """
    from ctxengine.engine.importers.registry import read
    from ctxengine.service.replay.cell import replay_cell
    from ctxengine.service.replay.engines import LAB_ENGINES
    from ctxengine.service.replay.from_transcript import source_of_transcript
    from ctxengine.service.replay.models import lab_model
    from ctxengine.service.replay.reading import reading_of
    from ctxengine.service.replay.wanted import ReplaySettings

    workload, model = referee.module("workload"), lab_model("claude-sonnet-4-6")
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in LAB_ENGINES}
    for seed in range(1, seeds + 1):
        text = chat_of(workload.turns(turns, seed=seed, scale=scale), workload.SYSTEM)
        (foreign,) = read(text, name=f"made-{seed}").sessions
        reading = reading_of(source_of_transcript(foreign, name=f"made-{seed}"))
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
    with tempfile.TemporaryDirectory(prefix="ctxengine-bench-") as folder:
        os.environ["CTX_DATA_DIR"] = folder
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
        import django

        django.setup()
        rows = lab_rows(
            turns=options.turns, seeds=options.seeds, budget=options.budget, scale=options.scale
        )
    for row in rows:
        print(json.dumps(row))


def main() -> None:
    """Print one line per seed and the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=100_000)
    parser.add_argument("--scale", type=float, default=2.5)
    parser.add_argument("--low-water", type=float, default=0.25)
    parser.add_argument("--gap-step", type=float, default=12)
    parser.add_argument("--gap-turn", type=float, default=60)
    parser.add_argument("--lab", action="store_true", help="all engines and policies of the lab")
    options = parser.parse_args()
    if not referee.present():
        raise SystemExit(2)
    if options.lab:
        print_lab(options)
        return
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
            options.gap_step,
            options.gap_turn,
        )
        ours["of_sliding"] = ours["cost"] / window["cost"]
        rows.append(ours)
        print(json.dumps({"seed": seed} | {k: round(v, 4) for k, v in ours.items()}), flush=True)
    medians = {key: round(statistics.median(row[key] for row in rows), 4) for key in rows[0]}
    print(json.dumps({"median": medians}))


if __name__ == "__main__":
    main()
