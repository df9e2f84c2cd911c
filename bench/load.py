"""Many runtimes at once against the real server: throughput, latency, errors, where it bends, and what the ledger holds after.

    python -m bench.load [--levels 1,2,4,8,16,32] [--seconds 8] [--workers 2] [--threads 16]

`manage.py up` serves on a data folder of its own. At each level so many runtimes live turns at the same time, each in a
session of its own: a message, a request, responses with two calls each, their results with the next request, a final response,
now and then a page of events or a request read back, and every tenth write sent twice under its Idempotency-Key. Beside it, the
same server program answers a view that only checks the key and reads JSON. Printed for each level: calls and steps a second,
p50 and p95, errors, the bare view's figures and the ratio; then the level at which more runtimes bring no more throughput. In
the end each runtime's own account is held against its session's events, every chain is verified and every request is rebuilt.
Exits with 1 on any error, lost or doubled event.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench.instance import ROOT, closing_socket, ended, product, wait_for

BARE = "/bare"
WRITTEN = ("user.message.created", "model.response.completed", "tool.result.received")
_TURN_STEPS = 3
_REPEATED = 0.1
_READ = 0.1
_IDLE_S = 1.0
_WARM_UP_S = 0.5
_LITTLE_MORE = 1.1
"""A level that brings less than a tenth more throughput than the best before it does not pay."""


class Figures(NamedTuple):
    """What one level came to."""

    runtimes: int
    calls: int
    seconds: float
    p50_ms: float
    p95_ms: float
    errors: int

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds


@dataclass
class Clock:
    """Seconds of each call of one runtime, and what failed."""

    seconds: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


class Caller:
    """One kept-alive connection with a key; an answer that is none of the good ones is an error, and counted."""

    def __init__(self, port: int, key: str, clock: Clock) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._clock = clock
        self._used = time.monotonic()

    def call(self, method: str, path: str, body: Any = None, once: str = "") -> Any:
        """The JSON of a good answer; None where it was another."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({"Idempotency-Key": once} if once else {})
        if time.monotonic() - self._used > _IDLE_S:
            # The server may have closed it meanwhile.
            self._connection.close()
        began = time.perf_counter()
        try:
            self._connection.request(method, path, data, headers)
            answer = self._connection.getresponse()
            text = answer.read()
        except (http.client.HTTPException, OSError) as error:
            self._connection.close()
            self._clock.errors[type(error).__name__] += 1
            return None
        self._clock.seconds.append(time.perf_counter() - began)
        self._used = time.monotonic()
        if answer.status >= 300:
            self._clock.errors[f"{method} {path}: {answer.status} {text[:200]!r}"] += 1
            return None
        return json.loads(text)


class Runtime:
    """One agent runtime with its session, and its account of what it has written."""

    def __init__(self, port: int, key: str, number: int) -> None:
        self.clock = Clock()
        self._caller = Caller(port, key, self.clock)
        self._chance = random.Random(number)
        self._calls = 0
        self.said: Counter[str] = Counter()
        body = {
            "model": {"provider": "anthropic", "name": "claude-sonnet-4-6"},
            "agent": {"name": f"load-{uuid.uuid4().hex}", "version": "1", "instructions": "Look."},
            "tools": [
                {"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}
            ],
        }
        self.session = str(self._write("sessions", body)["id"])

    def turn(self) -> None:
        """A whole run of two steps with tools, and a read or two."""
        text = f"Question {self._chance.randrange(10**6)}: what does the sheet say? " * 8
        run = self._write(f"sessions/{self.session}/runs", {"message": text}, WRITTEN[0])["id"]
        request = self._write(f"runs/{run}/assemble", {})
        for _ in range(2):
            calls = [self._asked(), self._asked()]
            self._responds(run, calls, "tool_use")
            results = [
                {"call_id": call["id"], "content": f"Row {n}. " * self._chance.randrange(20, 400)}
                for n, call in enumerate(calls)
            ]
            body = {"results": results, "assemble": True}
            self._write(f"runs/{run}/tool-results", body, WRITTEN[2], len(results))
        self._responds(run, [], "end_turn")
        if self._chance.random() < _READ * _TURN_STEPS:
            self._caller.call("GET", f"/api/v1/requests/{request['request_id']}")
            self._caller.call("GET", f"/api/v1/sessions/{self.session}/events?limit=20")

    def _asked(self) -> dict[str, Any]:
        self._calls += 1
        return {"type": "tool_use", "id": f"c{self._calls}", "name": "read", "input": {"n": 1}}

    def _responds(self, run: str, calls: list[dict[str, Any]], stop: str) -> None:
        said = [{"type": "text", "text": "The sheet says so. " * 10}, *calls]
        body = {"response": {"content": said, "stop_reason": stop}, "usage": {"input_tokens": 900}}
        self._write(f"runs/{run}/responses", body, WRITTEN[1])

    def _write(self, path: str, body: Any, kind: str = "", count: int = 1) -> Any:
        once = uuid.uuid4().hex
        answer = self._caller.call("POST", f"/api/v1/{path}", body, once)
        if answer is None:
            raise RuntimeError(f"{path}: {dict(self.clock.errors)}")
        if kind:
            self.said[kind] += count
        if self._chance.random() < _REPEATED:
            again = self._caller.call("POST", f"/api/v1/{path}", body, once)
            if again != answer:
                self.clock.errors[f"{path.split('/')[-1]}: its repeat answers otherwise"] += 1
        return answer

    def missing_or_doubled(self) -> list[str]:
        """What the session's events hold more or less often than it was written."""
        kinds: Counter[str] = Counter()
        cursor, places = "", []
        while True:
            page = self._caller.call(
                "GET", f"/api/v1/sessions/{self.session}/events?limit=200{cursor}"
            )
            if page is None:
                return [f"its events could not be read: {dict(self.clock.errors)}"]
            kinds.update(event["type"] for event in page["items"])
            places += [event["sequence"] for event in page["items"]]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        wrong = [
            f"{kind}: written {self.said[kind]}, found {kinds[kind]}"
            for kind in WRITTEN
            if kinds[kind] != self.said[kind]
        ]
        if sorted(places) != list(range(1, len(places) + 1)):
            wrong.append("sequences with a gap, or twice")
        return wrong


def level(work: list[Callable[[], None]], clocks: list[Clock], seconds: float) -> Figures:
    """Let each of these work again and again, all at the same time, for so long."""
    earlier = [len(clock.seconds) for clock in clocks]
    until = time.monotonic() + seconds

    def keep(one: Callable[[], None]) -> None:
        while time.monotonic() < until:
            try:
                one()
            except RuntimeError:
                return

    threads = [threading.Thread(target=keep, args=(one,)) for one in work]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    found = sorted(s for clock, n in zip(clocks, earlier, strict=True) for s in clock.seconds[n:])
    errors = sum(clock.errors.total() for clock in clocks)
    if not found:
        return Figures(len(work), 0, took, 0.0, 0.0, errors)
    p95 = found[min(len(found) - 1, int(len(found) * 0.95))]
    return Figures(len(work), len(found), took, statistics.median(found) * 1e3, p95 * 1e3, errors)


def bend(levels: list[Figures]) -> Figures:
    """The last level that brought noticeably more throughput than those before it."""
    best = levels[0]
    for one in levels[1:]:
        if one.rate > best.rate * _LITTLE_MORE:
            best = one
    return best


@contextmanager
def bare_server(data: Path, workers: int, threads: int) -> Iterator[int]:
    """The same server program and settings as `up` uses, with the bare view; gives its port."""
    with closing_socket() as port:
        pass
    command = [
        sys.executable, "-m", "gunicorn", "bench.bare_site:application",
        "--bind", f"127.0.0.1:{port}", "--worker-class", "gthread",
        "--workers", str(workers), "--threads", str(threads),
        "--graceful-timeout", "10", "--log-level", "warning", "--no-control-socket",
        "--config", "python:ctxengine.site.web",
    ]  # fmt: skip
    environment = os.environ | {
        "CTX_DATA_DIR": str(data),
        "DJANGO_SETTINGS_MODULE": "ctxengine.site.settings",
    }
    child = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield port
    finally:
        ended(child)


def bare_body() -> dict[str, Any]:
    """A body of the size of a result."""
    return {"results": [{"call_id": "c1", "content": "Row 1. " * 210}], "assemble": True}


def main(argv: list[str] | None = None) -> int:
    """Start both servers, go through the levels, look at the ledger; gives the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--levels", default="1,2,4,8,16,32", help="runtimes at the same time")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each level")
    parser.add_argument("--workers", type=int, default=2, help="web processes, as CTX_WEB_WORKERS")
    parser.add_argument("--threads", type=int, default=16, help="of each, as CTX_WEB_THREADS")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="ctxengine-load-") as folder:
        Path(folder).chmod(0o711)
        data = Path(folder) / "data"
        with (
            product(data, workers=args.workers, threads=args.threads) as up,
            bare_server(data, args.workers, args.threads) as bare,
        ):
            runtimes, bad = measure(args, up, bare)
            bad += [
                f"session {one.session}: {wrong}"
                for one in runtimes
                for wrong in one.missing_or_doubled()
            ]
            bad += looked_after(data)
    for line in bad:
        print(f"WRONG: {line}")
    print("Nothing was lost or doubled." if not bad else f"{len(bad)} findings.")
    return 1 if bad else 0


def measure(
    args: argparse.Namespace, up: dict[str, Any], bare: int
) -> tuple[list[Runtime], list[str]]:
    """All levels; gives the runtimes and what went wrong."""
    port, key = urlsplit(up["url"]).port or 80, up["api_key"]
    runtimes: list[Runtime] = []
    levels: list[Figures] = []
    print(
        f"{args.workers} web processes of {args.threads} threads, {os.cpu_count()} processors for both sides"
    )
    print(
        "runtimes   calls/s  steps/s     p50     p95  errors | bare/s  bare p50  p95 | ratio p50   p95"
    )
    for count in [int(count) for count in args.levels.split(",")]:
        runtimes += [Runtime(port, key, len(runtimes) + n) for n in range(count - len(runtimes))]
        busy = runtimes[:count]
        before = sum(one.said[WRITTEN[1]] for one in busy)
        found = level([one.turn for one in busy], [one.clock for one in busy], args.seconds)
        steps = sum(one.said[WRITTEN[1]] for one in busy) - before
        clocks = [Clock() for _ in range(count)]
        callers = [Caller(bare, key, clock) for clock in clocks]
        work = [lambda one=one: one.call("POST", BARE, bare_body()) for one in callers]  # type: ignore[misc]
        level(work, clocks, _WARM_UP_S)
        least = level(work, clocks, max(1.0, args.seconds / 3))
        levels.append(found)
        if not least.calls:
            raise RuntimeError(f"The bare view answered no call: {dict(clocks[0].errors)}")
        print(
            f"{count:8d} {found.rate:9.0f} {steps / found.seconds:8.0f} {found.p50_ms:7.1f} {found.p95_ms:7.1f}"
            f" {found.errors:7d} |{least.rate:7.0f} {least.p50_ms:9.1f} {least.p95_ms:4.0f} |"
            f" {found.p50_ms / least.p50_ms:9.2f} {found.p95_ms / least.p95_ms:5.2f}"
        )
        sys.stdout.flush()
    best = bend(levels)
    print(
        f"It bends after {best.runtimes} runtimes at the same time: {best.rate:.0f} calls a second, "
        f"p50 {best.p50_ms:.1f} ms, p95 {best.p95_ms:.1f} ms."
    )
    errors = Counter[str]()
    for one in runtimes:
        errors.update(one.clock.errors)
    return runtimes, [f"{count} times {what}" for what, count in errors.items()]


def looked_after(data: Path) -> list[str]:
    """Verify every chain and rebuild every request, by the commands that an operator has."""
    bad = []
    for command in ("verify_ledger", "prove_requests"):
        options = ["--all"] if command == "prove_requests" else []
        done = subprocess.run(
            [sys.executable, "manage.py", command, *options, "--json", "--data", str(data)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        print(f"{command}: {(done.stdout.strip().splitlines() or [''])[-1][:200]}")
        if done.returncode:
            bad.append(f"{command} ended with {done.returncode}: {done.stderr[-300:]}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
