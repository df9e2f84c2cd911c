"""Step k+1 of the engine alone at 1,000, 10,000 and 50,000 items, against the referee's floor, in one run.

Usage:
    python -m bench.assemble [--sizes 1000,10000,50000] [--steps 60] [--provider openai --model gpt-4o] [--low-water 0.25]

A step appends one assistant message with one call and its result (derived: decoded, counted, hashed, chained), prepares
(measures, allocates, selects) and builds (renders what is new, validates, hashes, writes the manifest). Blocks of floor steps
and of our steps alternate and CPU time is taken, so that other work on the machine falls out. `--low-water 1.0` moves the cut
on every step once the budget is full.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from bench import referee
from bench.lab import lab_ready
from ctxengine.engine.build import BuildOptions

if TYPE_CHECKING:
    from bench.engine_session import EngineSession

BUDGET = 100_000
TOOLS = (
    "read_file",
    "search_code",
    "run_command",
    "http_get",
    "sql_query",
    "list_dir",
    "apply_patch",
    "get_logs",
)
_HASH_ONLY = BuildOptions(with_body=False)
_WITH_BODY = BuildOptions(with_body=True)
_UNCHECKED = BuildOptions(validate=False, with_body=False)


class Floor:
    """The referee's step: count two, select, join ready bytes, sha256."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self._peers = referee.module("peers")
        try:
            import orjson

            self._dumps: Callable[[Any], bytes] = orjson.dumps
        except ImportError:
            self._dumps = lambda message: json.dumps(message).encode()
        self._reference = self._peers.Ref()
        self._state = self._reference.open(messages, BUDGET)
        self._reference.assemble(self._state)
        self._ready = {id(message): self._dumps(message) for message in self._state.msgs}

    def step(self, new: list[dict[str, Any]]) -> bytes:
        """Append, select, join, hash."""
        self._reference.push(self._state, new)
        kept = self._reference.assemble(self._state)
        for message in new:
            self._ready[id(message)] = self._dumps(message)
        return hashlib.sha256(b",".join([self._ready[id(m)] for m in kept])).digest()

    def tail(self, messages: list[dict[str, Any]]) -> float:
        """Seconds to count from the newest message back until the budget is spent, to serialise those and to hash them."""
        began, total, kept = time.thread_time(), 0, []
        for message in reversed(messages):
            total += self._peers.count(message)
            if total > BUDGET:
                break
            kept.append(self._dumps(message))
        hashlib.sha256(b",".join(reversed(kept))).digest()
        return time.thread_time() - began


def opened(args: argparse.Namespace, messages: list[dict[str, Any]]) -> EngineSession:
    """A session with the transcript in its log."""
    from bench.engine_session import EngineSession

    session = EngineSession(
        provider=args.provider,
        model=args.model,
        budget=BUDGET,
        low_water=args.low_water,
        tools=TOOLS,
        instructions=messages[0]["content"],
    )
    for message in messages[1:]:
        session.push(message)
    return session


def measured(
    args: argparse.Namespace, size: int, transcript: list[dict[str, Any]], steps: Iterator[Any]
) -> dict[str, float]:
    """Medians (seconds) at one size."""
    began = time.thread_time()
    session = opened(args, transcript)
    loaded = time.thread_time() - began
    began = time.thread_time()
    prepared = session.prepare()
    decided = time.thread_time() - began
    first = decided + statistics.median(first_build(session, prepared) for _ in range(5))
    # Its cut stands in the log from here on, as it does once a request was handed out.
    session.step()
    began = time.thread_time()
    floor = Floor(transcript) if args.floor else None
    counted = time.thread_time() - began
    lines: dict[str, list[float]] = {}

    def timed(label: str, work: Callable[..., Any], *given: Any) -> Any:
        start = time.thread_time()
        result = work(*given)
        lines.setdefault(label, []).append(time.thread_time() - start)
        return result

    gc.collect()
    prepared = session.prepare()
    request = session.build(prepared, _HASH_ONLY)
    for block in blocks(steps, args.steps):
        if floor is not None:
            for new in block:
                timed("floor", floor.step, new)
        # What a runtime sends is text: writing it is not the engine's work.
        for texts in [[(message, json.dumps(message)) for message in new] for new in block]:
            timed("append", push_all, session, texts)
            prepared = timed("prepare", session.prepare)
            timed("build", session.build, prepared, _HASH_ONLY)
        for _ in block:
            timed("unchecked", session.build, prepared, _UNCHECKED)
            request = timed("body", session.build, prepared, _WITH_BODY)
        timed("record", session.step)
    whole = [
        sum(parts) for parts in zip(lines["append"], lines["prepare"], lines["build"], strict=True)
    ]
    figures = {label: statistics.median(values) for label, values in lines.items()}
    figures |= {"step": statistics.median(whole), "first": first, "load": loaded / len(transcript)}
    if floor is not None:
        figures |= {"uncounted": loaded + first, "counted": counted}
        figures["tail"] = statistics.median(floor.tail(transcript) for _ in range(5))
    figures["units"] = len(prepared.run.history) + len(prepared.run.active)
    figures["tokens"] = request.budget.request
    figures["memory"] = peak_of_a_build(session)
    return figures


def first_build(session: EngineSession, prepared: Any) -> float:
    """Seconds of a build that finds nothing rendered."""
    began = time.thread_time()
    session.build(prepared, _HASH_ONLY, fresh=True)
    return time.thread_time() - began


def peak_of_a_build(session: EngineSession) -> int:
    """Bytes above the request's own that one build holds at its peak, with a memo that knows nothing."""
    prepared = session.prepare()
    tracemalloc.start()
    body = session.build(prepared, _WITH_BODY, fresh=True).body
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - len(body)


def push_all(session: EngineSession, texts: list[Any]) -> None:
    """Append messages with the texts they were received as."""
    for message, raw in texts:
        session.push(message, raw)


def blocks(steps: Iterator[Any], count: int) -> Iterator[list[Any]]:
    """The steps in tens."""
    while count > 0:
        yield list(islice(steps, min(10, count)))
        count -= 10


def shown(seconds: float) -> str:
    """Seconds for people."""
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def report(size: int, figures: dict[str, float]) -> None:
    """One size's lines."""
    print(
        f"\n{size:,} items ({figures['units']:.0f} units, {figures['tokens']:,.0f} tokens in the request)"
    )
    print(f"  step k+1: append + prepare + build   {shown(figures['step']):>10}")
    if "floor" in figures:
        print(
            f"  floor of the same run                {shown(figures['floor']):>10}"
            f"   ratio {figures['step'] / figures['floor']:.2f}"
        )
    for label, text in (
        ("append", "  derive and append two items"),
        ("prepare", "  measure, allocate, select"),
        ("build", "  build: hash, manifest, validation"),
        ("unchecked", "  the same without validation"),
        ("body", "  build with the wire body joined"),
        ("record", "the lab's whole step, its prediction and events"),
        ("first", "first build, nothing rendered yet"),
        ("load", "derive and append, per item of the load"),
    ):
        print(f"  {text:<40}{shown(figures[label]):>10}")
    if "uncounted" in figures:
        ours, tail, counted = figures["uncounted"], figures["tail"], figures["counted"]
        print(f"  {'first build, nothing counted before':<40}{shown(ours):>10}")
        print(
            f"    floor that counts what it sends       {shown(tail):>10}   ratio {ours / tail:.1f}"
        )
        print(
            f"    floor that counts everything once     {shown(counted):>10}   ratio {ours / counted:.1f}"
        )
    print(f"  {'peak memory of a build above its body':<40}{figures['memory'] / 2**20:>7.2f} MiB")


def main(argv: list[str] | None = None) -> int:
    """Run all sizes and print figures and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,10000,50000")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--provider", default="openai")
    parser.add_argument("--model", default="gpt-4o")
    parser.add_argument("--low-water", type=float, default=0.25)
    args = parser.parse_args(argv)
    args.floor = referee.present()
    if not args.floor:
        return 2
    with lab_ready():
        return measure(args)


def measure(args: argparse.Namespace) -> int:
    """All sizes."""
    workload = referee.module("workload")
    referee.module("peers").enc()
    sizes = [int(size) for size in args.sizes.split(",")]
    transcript = workload.transcript(max(sizes))
    results = {}
    for size in sizes:
        steps = iter(workload.extend(args.steps))
        results[size] = measured(
            args, size, workload.transcript(size) if size < max(sizes) else transcript, steps
        )
        report(size, results[size])
    flat = results[max(sizes)]["step"] / results[min(sizes)]["step"]
    print(f"\nflatness {max(sizes):,} to {min(sizes):,} items: {flat:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
