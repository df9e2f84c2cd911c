"""What the engine's requests cost under a provider's cache rules, on the referee's transcripts.

    python bench/economics.py [--turns 60] [--seeds 5] [--budget 100000] [--low-water 0.25]

Each step's real request body is split into the blocks a provider sees, with the markers it carries, and handed to the referee's
cache simulator (`../shared/bench/cachesim.py`), beside its own sliding window on the same transcript. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

REFEREE = Path(os.environ.get("CTX_BENCH_DIR") or Path(__file__).parents[1] / "../shared/bench")
if not REFEREE.is_dir():
    raise SystemExit(f"The referee's scripts are not here ({REFEREE}); nothing to measure against.")
sys.path[:0] = [str(Path(__file__).parents[1]), str(REFEREE)]

import cachesim  # noqa: E402
from workload import SYSTEM, turns  # noqa: E402

from bench.live import LiveSession  # noqa: E402


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


def replay(groups_by_turn: list[list[list[dict]]], options: argparse.Namespace) -> dict:
    """Run one transcript through the live engine and the referee's Anthropic cache."""
    session = LiveSession(
        instructions=SYSTEM,
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


def main() -> None:
    """Print one line per seed and the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=100_000)
    parser.add_argument("--scale", type=float, default=2.5)
    parser.add_argument("--low-water", type=float, default=0.25)
    parser.add_argument("--gap-step", type=float, default=12)
    parser.add_argument("--gap-turn", type=float, default=60)
    options = parser.parse_args()
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
