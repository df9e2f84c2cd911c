"""What planning and stepping cost as a `working_set` session ages: 50 turns against 1,000, as ratios in one run.

    python bench/planning.py [--turns 50 1000] [--steps 25] [--model anthropic/claude-sonnet-4-6] [--budget TOKENS]

A made-up transcript of short turns ends in a long one. Timed are the plans at the starts of turns and every step of the last
one: select, build, validate, hash, manifest. `plan` is the median of the last eight. `grown` are the plans of the older session
that made its packet grow: the median of the first three behind the one that made it, and of the last three; their ratio tells
whether that follows the age. On one thread; nothing is asserted. The log is the one in memory: what Postgres reads and sends is
no part of these figures; `tests/service/test_step_cost.py` counts it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench.lab import lab_ready  # noqa: E402
from ctxengine.engine.event_types import EventType  # noqa: E402


def transcript(turns: int, steps: int) -> str:
    """An OpenAI chat transcript: so many turns of one call each, then one of `steps` calls."""
    messages: list[dict[str, Any]] = []

    def call(name: str, text: str) -> None:
        made = {"id": name, "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
        messages.append({"role": "tool", "tool_call_id": name, "content": text})

    for turn in range(turns):
        messages.append({"role": "user", "content": f"What does part {turn} of the ledger hold?"})
        call(f"c{turn}", f"part {turn}\n" + f"entry {turn} of the ledger, with words\n" * 30)
        messages.append({"role": "assistant", "content": f"Part {turn} holds the value {turn}."})
    messages.append({"role": "user", "content": "Go through the parts once more, one by one."})
    for step in range(steps):
        call(f"last{step}", f"once more {step}\n" * 20)
    messages.append({"role": "assistant", "content": "Done."})
    return json.dumps({"messages": messages})


def timed(kept: list[float], work: Callable[..., Any], grown: list[float] | None = None) -> Any:
    """The same method, its seconds kept.

    Args:
        grown: gets those in which the method wrote a packet into the log of its first argument.
    """

    def measured(self: Any, *args: Any, **fields: Any) -> Any:
        before = len(args[0].log.every(EventType.COMPACTED)) if grown is not None else 0
        began = time.perf_counter()
        try:
            return work(self, *args, **fields)
        finally:
            kept.append(time.perf_counter() - began)
            if grown is not None and len(args[0].log.every(EventType.COMPACTED)) > before:
                grown.append(kept[-1])

    return measured


def measure(turns: int, options: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of the last plan and of a step behind it, for a session of so many turns."""
    from ctxengine.engine.importers.registry import read
    from ctxengine.service.replay.cell import task_of
    from ctxengine.service.replay.figures import Cell, CellTotals
    from ctxengine.service.replay.from_transcript import source_of_transcript
    from ctxengine.service.replay.models import lab_model
    from ctxengine.service.replay.own import Play
    from ctxengine.service.replay.reading import reading_of
    from ctxengine.service.replay.session import LabSession
    from ctxengine.service.replay.wanted import ReplaySettings
    from ctxengine.service.replay.working_set import WorkingSetDriver

    (foreign,) = read(transcript(turns, options.steps), name="ledger.json").sessions
    reading = reading_of(source_of_transcript(foreign, name="ledger"), with_uses=False)
    settings = ReplaySettings(budget=options.budget)
    model = lab_model(options.model)
    task = task_of(reading, "working_set", model, settings, at=datetime(2026, 1, 1, tzinfo=UTC))
    totals = CellTotals(
        engine="working_set",
        model=model.name,
        provider=model.provider,
        budget=options.budget,
        ttl="5m",
        cost=None,
    )
    plans: list[float] = []
    grown: list[float] = []
    steps: list[float] = []
    untimed = LabSession.step, WorkingSetDriver.run_opened
    LabSession.step = timed(steps, untimed[0])  # type: ignore[method-assign]
    WorkingSetDriver.run_opened = timed(plans, untimed[1], grown)  # type: ignore[method-assign]
    try:
        tokens = [played.figures.tokens for played in Play(task, Cell(totals)).steps()]
    finally:
        LabSession.step, WorkingSetDriver.run_opened = untimed  # type: ignore[method-assign]
    return {
        "turns": turns,
        "plan_ms": round(statistics.median(plans[-8:]) * 1000, 3),
        "step_ms": round(statistics.median(steps[-options.steps + 2 :]) * 1000, 3),
        "request_tokens": tokens[-1],
    } | _growth([seconds * 1000 for seconds in grown])


def _growth(grown: list[float]) -> dict[str, float]:
    """What growing the packet cost at first and at last (milliseconds); nothing where it grew fewer than six times."""
    later = grown[1:]
    if len(later) < 6:
        return {}
    first, last = (round(statistics.median(some), 3) for some in (later[:3], later[-3:]))
    return {"grown": len(later), "grown_first_ms": first, "grown_last_ms": last}


def main() -> None:
    """Print one line per age, then the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, nargs=2, default=[50, 1_000])
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--model", default="anthropic/claude-sonnet-4-6")
    parser.add_argument("--budget", type=int, default=None)
    options = parser.parse_args()
    with lab_ready():
        young, old = (measure(turns, options) for turns in options.turns)
    for line in (young, old):
        print(json.dumps(line))
    ratios = {name: round(old[f"{name}_ms"] / young[f"{name}_ms"], 2) for name in ("plan", "step")}
    if "grown" in old:
        ratios["grown"] = round(old["grown_last_ms"] / old["grown_first_ms"], 2)
    print(json.dumps({"ratio": ratios}))


if __name__ == "__main__":
    main()
