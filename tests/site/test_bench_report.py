"""The benchmark report: what it says follows from the figures, and a run that was ended goes on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench import replayed as kept
from bench.report import _refusals, _verdicts
from ctxengine.service.replay.figures import merged
from ctxengine.service.replay.many import Matrix
from ctxengine.service.replay.models import lab_model
from ctxengine.service.replay.wanted import ReplaySettings

MATRIX = Matrix(
    engines=("suffix", "sliding_window"),
    models=(lab_model("gpt-5.4"),),
    settings=(ReplaySettings(budget=16_000),),
    at=datetime(2026, 7, 1, tzinfo=UTC),
)


def row(engine: str, **changes: Any) -> dict[str, Any]:
    figures = {
        "fidelity": 0.9,
        "cost_ratio": 0.2,
        "input_tokens": 1_000_000,
        "refused": 0,
        "over_budget": 0,
        "mean_tokens": 10_000,
        "cached_ratio": 0.9,
        "refusals": {},
        "skipped_sessions": 0,
        "steps": 10,
        "by_class": {},
    }
    return {"engine": engine, **figures, **changes}


def test_a_cheaper_peer_of_the_same_fidelity_is_named_with_the_reason() -> None:
    ours, peer = row("suffix"), row("append_all", input_tokens=500_000, over_budget=7)
    told = "\n".join(_verdicts([ours, peer]))
    assert "`suffix` costs 100% more than `append_all`" in told
    assert "it sends 7 requests over the budget" in told
    own = row("suffix", by_class={"platform": 5_000, "tools": 4_000, "history": 9})
    peer = row("append_all", input_tokens=500_000, by_class={"prefix": 2_000, "history": 9})
    assert "700 tokens of each request here are policy" in "\n".join(_verdicts([own, peer]))
    assert "no peer keeps as many facts whole for less" in "\n".join(
        _verdicts([ours, row("sliding_window", input_tokens=500_000, fidelity=0.89)])
    )


def test_refused_steps_are_counted_by_their_cause() -> None:
    told = "\n".join(_refusals([row("suffix", refusals={"budget_exceeded: user_input": 3})]))
    assert "refused 3 steps" in told and "the user's newest message alone" in told


def test_a_run_that_was_ended_goes_on_from_what_it_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for name in ("a", "b"):
        messages = [
            {"role": "user", "content": f"What is in /srv/{name}.py?"},
            {"role": "assistant", "content": f"/srv/{name}.py holds 4242."},
        ]
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps({"model": "gpt-5.4", "messages": messages}))
    files.append(tmp_path / "none.json")
    files[-1].write_text("[]")
    keep = tmp_path / "cells.jsonl"
    first, refused = kept.replayed("Some", files, MATRIX, processes=1, keep=keep)
    assert refused == 1 and len(first) == 4
    monkeypatch.setattr(kept, "replay_files", lambda paths, matrix, processes: iter(paths))
    again, refused = kept.replayed("Some", files, MATRIX, processes=1, keep=keep)
    assert refused == 1
    assert [line.as_json() for line in merged(again)] == [line.as_json() for line in merged(first)]
