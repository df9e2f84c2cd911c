"""REST: append a result and assemble, through the real server with one worker, against the referee's bare POST.

Usage:
    python -m bench.rest [--sizes 1000,20000] [--steps 100] [--provider anthropic --model claude-sonnet-4-6]

Both servers run on one embedded Postgres, started on a temporary data folder. A step of the loop is two calls: `responses` (not
timed here) and `tool-results` with `"assemble": true`, whose whole answer is read. The bare POST appends two rows and answers
with the newest 100,000 tokens. Blocks of both alternate.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench import referee
from bench.instance import Client, bare_server, product

BUDGET = 100_000
_BLOCK = 10


class Loop:
    """One session driven over REST."""

    def __init__(self, client: Client, session: str) -> None:
        self._client = client
        started = self._call(f"sessions/{session}/runs", {"message": "Go on with the work."})
        self._run = f"runs/{started['id']}"
        self._newest = self._call(f"{self._run}/assemble", {})["request_id"]

    def respond(self, message: dict[str, Any]) -> None:
        """Report what the model said: one call."""
        call = message["tool_calls"][0]
        blocks = [
            {"type": "text", "text": message["content"] or "Next."},
            {
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": json.loads(call["function"]["arguments"]),
            },
        ]
        self._call(
            f"{self._run}/responses", {"response": {"content": blocks, "stop_reason": "tool_use"}}
        )

    def results(self, message: dict[str, Any]) -> tuple[float, bytes]:
        """Report the result and take the next request; gives seconds and the answer."""
        body = {
            "results": [{"call_id": message["tool_call_id"], "content": message["content"]}],
            "assemble": True,
        }
        text, path = json.dumps(body), f"/api/v1/{self._run}/tool-results"
        began = time.perf_counter()
        answer = self._client.post(path, text, **{"Idempotency-Key": uuid.uuid4().hex})
        return time.perf_counter() - began, answer

    def changes(self, message: dict[str, Any]) -> tuple[float, bytes]:
        """Report the result, then take what changed since the request before; gives the seconds of the latter."""
        told = {"results": [{"call_id": message["tool_call_id"], "content": message["content"]}]}
        self._call(f"{self._run}/tool-results", told)
        began = time.perf_counter()
        answer = self._client.post(
            f"/api/v1/{self._run}/assemble",
            json.dumps({"base_request_id": self._newest}),
            **{"Idempotency-Key": uuid.uuid4().hex},
        )
        seconds = time.perf_counter() - began
        self._newest = json.loads(answer)["request_id"]
        return seconds, answer

    def _call(self, path: str, body: dict[str, Any]) -> Any:
        answer = self._client.post(
            f"/api/v1/{path}", json.dumps(body), **{"Idempotency-Key": uuid.uuid4().hex}
        )
        return json.loads(answer)


def opened(client: Client, args: argparse.Namespace) -> str:
    """A session with a budget of 100,000 tokens."""
    body = {
        "engine": "suffix",
        "model": {"provider": args.provider, "name": args.model},
        "agent": {"name": "bench", "version": "1", "instructions": "Work step by step."},
        "tools": [
            {"name": name, "description": "Does its work.", "input_schema": {"type": "object"}}
            for name in referee.module("workload").TOOLS
        ],
        "policy": {"policy_cap": BUDGET},
    }
    answer = client.post(
        "/api/v1/sessions", json.dumps(body), **{"Idempotency-Key": uuid.uuid4().hex}
    )
    return str(json.loads(answer)["id"])


def quantiles(values: list[float]) -> tuple[float, float]:
    """p50 and p99."""
    ordered = sorted(values)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def main(argv: list[str] | None = None) -> int:
    """Start both servers, run all sizes, print figures and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,20000")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--provider", default="anthropic")
    parser.add_argument("--model", default="claude-sonnet-4-6")
    args = parser.parse_args(argv)
    if not referee.present():
        return 2
    with tempfile.TemporaryDirectory(prefix="ctxengine-bench-") as folder:
        Path(folder).chmod(0o711)
        data = Path(folder) / "data"
        with product(data) as up:
            os.environ["CTX_DATA_DIR"] = str(data)
            from bench import seeding

            dsn = seeding.floor_database()
            referee.module("floor").pg_load(dsn, items=1_000, sessions=2)
            with bare_server(dsn) as port:
                measure(args, up, Client(port))
    return 0


def measure(args: argparse.Namespace, up: dict[str, Any], bare: Client) -> None:
    """All sizes."""
    from bench import seeding

    client = Client(urlsplit(up["url"]).port or 80, {"Authorization": f"Bearer {up['api_key']}"})
    workload = referee.module("workload")
    for size in [int(size) for size in args.sizes.split(",")]:
        session = opened(client, args)
        seeding.fill(session, workload.transcript(size)[1:])
        loop = Loop(client, session)
        steps = iter(workload.extend(args.steps))
        ours: list[float] = []
        floor: list[float] = []
        answer = b""
        while block := list(islice(steps, _BLOCK)):
            for new in block:
                loop.respond(new[0])
                seconds, answer = loop.results(new[1])
                ours.append(seconds)
            for new in block:
                text = json.dumps(new)
                began = time.perf_counter()
                bare.post("/step", text)
                floor.append(time.perf_counter() - began)
        report(size, ours, floor, answer)
        delta(client, bare, opened(client, args), args.steps)


def delta(client: Client, bare: Client, session: str, steps: int) -> None:
    """Assemble in its delta form against the least answer of the referee's server, which reads and writes nothing."""
    from bench import seeding

    workload = referee.module("workload")
    seeding.fill(session, workload.transcript(300)[1:])
    loop = Loop(client, session)
    ours: list[float] = []
    floor: list[float] = []
    answer = b""
    for new in workload.extend(steps):
        loop.respond(new[0])
        seconds, answer = loop.changes(new[1])
        ours.append(seconds)
        began = time.perf_counter()
        bare.get("/plain")
        floor.append(time.perf_counter() - began)
    (p50, p99), (floor50, _) = quantiles(ours[_BLOCK:]), quantiles(floor[_BLOCK:])
    changed = len(json.dumps(json.loads(answer).get("delta", {})))
    print(f"\ndelta form: answer of {len(answer):,} bytes, {changed:,} of them what changed")
    print(f"  assemble with a base         p50 {p50 * 1e3:6.2f} ms   p99 {p99 * 1e3:6.2f} ms")
    print(f"  plain view of the same run   p50 {floor50 * 1e3:6.2f} ms   ratio {p50 / floor50:.2f}")


def report(size: int, ours: list[float], floor: list[float], answer: bytes) -> None:
    """One size's lines; the first block warms both up."""
    (p50, p99), (floor50, floor99) = quantiles(ours[_BLOCK:]), quantiles(floor[_BLOCK:])
    tokens = json.loads(answer)["assembled"]["budget"]["request"]
    print(
        f"\n{size:,} items; request of {tokens:,} tokens, answer of {len(answer):,} bytes; first step {ours[0] * 1e3:.0f} ms"
    )
    print(f"  tool-results with assemble   p50 {p50 * 1e3:6.2f} ms   p99 {p99 * 1e3:6.2f} ms")
    print(
        f"  bare POST of the same run    p50 {floor50 * 1e3:6.2f} ms   p99 {floor99 * 1e3:6.2f} ms"
    )
    print(f"  ratio                        p50 {p50 / floor50:6.2f}      p99 {p99 / floor99:6.2f}")


if __name__ == "__main__":
    sys.exit(main())
