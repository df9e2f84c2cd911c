"""What a working set costs on the referee's transcripts: the row of the targets, by the referee's own rules and count.

Nothing here is timed: transcripts, engine and the cache's rules are deterministic, so one state has one set of figures.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import pytest

from bench import referee
from bench.economics import STEP_GAP_S, TURN_GAP_S, replay

BUDGET = 145_000
"""Tokens of our count, at which requests peak at about 100,000 by the referee's: the target's budget."""
SEEDS = range(1, 6)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    if not referee.present():
        pytest.skip("The referee's scripts are not here; name their folder with CTX_BENCH_DIR.")
    options = argparse.Namespace(
        engine="working_set", budget=BUDGET, low_water=0.25, gap_turn=TURN_GAP_S
    )
    return [_priced(seed, options) for seed in SEEDS]


def _priced(seed: int, options: argparse.Namespace) -> dict[str, Any]:
    groups = referee.module("workload").turns(60, seed=seed, scale=2.5)
    cachesim = referee.module("cachesim")
    window = cachesim.run(
        "b sliding window",
        "anthropic 5m",
        groups,
        BUDGET,
        cachesim.tools_text(),
        STEP_GAP_S,
        TURN_GAP_S,
    )
    ours = replay(groups, options)
    return ours | {"of_sliding": ours["cost"] / window["cost"]}


def median(rows: list[dict[str, Any]], name: str) -> float:
    return float(statistics.median(row[name] for row in rows))


def test_most_of_what_is_sent_is_read_from_the_cache(rows: list[dict[str, Any]]) -> None:
    assert median(rows, "cached_ratio") >= 0.96
    assert median(rows, "cost_ratio") <= 0.146


def test_that_is_not_bought_by_carrying_little(rows: list[dict[str, Any]]) -> None:
    assert median(rows, "mean_request") >= 50_000
    assert max(row["of_sliding"] for row in rows) <= 0.32


def test_the_cache_is_missed_only_where_a_cut_was_announced(rows: list[dict[str, Any]]) -> None:
    assert all(0 < row["misses"] <= row["cuts"] for row in rows)
