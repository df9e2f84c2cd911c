"""Import of a long transcript: its stages, the whole, the floor of the same run; medians, and peak memory.

Usage:
    python -m bench.importing [--items 20000] [--rounds 3]

The transcript is the referee's where its scripts are at hand, else the sample generator's. Deriving (decode, count, hash,
chain, make the lines that are copied) is measured with every request rebuilt on the spot, as for a short session, and with
outlined ones, as for a long one; rebuilding those is measured on the first of them. The floor reads the same text with the
fastest JSON reader, takes one sha256 of each message and copies one row of each. Stages are in processor seconds of this
process, what waits for the database in seconds of the clock as well.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import referee


def main(argv: list[str] | None = None) -> int:
    """Measure on a Postgres of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="ctxengine-bench-") as folder:
        Path(folder).chmod(0o711)
        os.environ["CTX_DATA_DIR"] = folder
        from ctxengine.site import keys
        from ctxengine.site.postgres.server import EmbeddedPostgres

        keys.ensure(Path(folder))
        server = EmbeddedPostgres(Path(folder))
        server.start()
        try:
            os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
            import django

            django.setup()
            measure(args.items, args.rounds)
        finally:
            from django.db import connections

            connections.close_all()
            server.stop()
    return 0


def transcript(items: int) -> tuple[str, str]:
    """The text to import, and whose it is."""
    if referee.present():
        return json.dumps(
            {"messages": referee.module("workload").transcript(items)}
        ), "the referee's"
    from ctxengine.service.sample_data.long_session import long_session

    return long_session(items), "the sample generator's"


def measure(items: int, rounds: int) -> None:
    """Print one line for each stage."""
    from django.core.management import call_command

    from ctxengine.engine.importers.registry import read
    from ctxengine.engine.tokens.counters import count
    from ctxengine.ledger.models import Tenant

    call_command("migrate", interactive=False, verbosity=0)
    tenant = Tenant.objects.create(
        id=uuid.uuid4(), slug="bench", name="Bench", created_at=datetime.now(UTC)
    )
    text, whose = transcript(items)
    items = sum(session.items_in for session in read(text, name="long.json").sessions)
    count("warm", "o200k_base")
    # What the first import of a process loads is no part of any.
    imported(tenant.id, json.dumps({"messages": [{"role": "user", "content": "Hello."}]}))
    print(
        f"{items:,} items of {whose} transcript, {len(text):,} characters; medians of {rounds} rounds"
    )
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        gc.collect()
        for label, seconds in stages(tenant.id, text).items():
            found.setdefault(label, []).append(seconds)
    each = statistics.median(found.pop(_EACH_LATER))
    held = max(found.pop(_MEMORY))
    for label, times in found.items():
        line(label, items, statistics.median(times))
    for clock in (" (clock)", ""):
        whole, floor = (
            statistics.median(found[f"{label}{clock}"]) for label in ("the whole import", "floor")
        )
        print(f"  the whole import takes {whole / floor:.1f}x its floor{clock}")
    print(f"  an outlined request is rebuilt in {each * 1e3:.2f} ms (clock)")
    size = len(text.encode())
    print(
        f"  the import held at most {held / 2**20:,.0f} MiB: {held / size:.1f}x the file of {size / 2**20:,.1f} MiB"
    )


def stages(tenant: uuid.UUID, text: str) -> dict[str, float]:
    """Seconds of each stage, once."""
    from django.db import transaction

    from ctxengine.engine.importers.registry import read
    from ctxengine.ledger.bulk import write_lines
    from ctxengine.ledger.copy_lines import REQUEST, request_line
    from ctxengine.service.imports.complete import complete_requests
    from ctxengine.service.reconstruct import Reconstruction

    session_id, taken = imported(tenant, text)
    began = time.process_time()
    taken["floor (clock)"] = spent(lambda: floor(text))
    taken["floor"] = time.process_time() - began
    taken["reading"] = spent(lambda: read(text, name="long.json"), time.thread_time)
    parts: list[Any] = []
    for label, outlined_from, take in (
        ("requests rebuilt at once", sys.maxsize, None),
        ("requests outlined", 0, parts.append),
    ):
        # A reconstruction lets go of what it has taken in, so each reads the text anew.
        (foreign,) = read(text, name="long.json").sessions
        walk = Reconstruction(
            tenant,
            foreign,
            file_sha256="0" * 64,
            format="openai_chat",
            now=datetime.now(UTC),
            take=take,
            outlined_from=outlined_from,
        )
        taken[label] = spent(walk.run, time.thread_time)

    def copied() -> None:
        with transaction.atomic():
            for part in parts:
                write_lines([*part.lines, (REQUEST, map(request_line, part.requests))])
            transaction.set_rollback(True)

    taken["COPY of the log (clock)"] = spent(copied)
    counts = list[int]()
    later = spent(
        lambda: counts.append(
            complete_requests(tenant_id=tenant, session_id=session_id, last=_LATER)
        )
    )
    taken[_EACH_LATER] = later / max(1, counts[0])
    return taken


def imported(tenant: uuid.UUID, text: str) -> tuple[uuid.UUID, dict[str, float]]:
    """The whole import: the session it made, what it took, and the memory it had at most beyond what was there before."""
    from ctxengine.service.import_transcript import import_file
    from ctxengine.service.specs import Actor

    # Blanks at its end make it a file that was not imported yet.
    data = [(text + " " * next(_rounds)).encode()]
    actor, outcomes = Actor(tenant, "bench"), list[Any]()
    before, began = forget_peak(), time.process_time()
    clock = spent(
        lambda: outcomes.append(import_file(actor=actor, name="long.json", data=data.pop()))
    )
    taken = {
        "the whole import (clock)": clock,
        "the whole import": time.process_time() - began,
        _MEMORY: float(memory("VmHWM") - before),
    }
    return outcomes[0].session_ids[0], taken


def forget_peak() -> int:
    """Begin a new peak of this process' memory; gives what it holds now (bytes)."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(what: str) -> int:
    """A figure of this process' memory, as the kernel names it (bytes)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{what}:"))


_rounds = iter(range(1, 1_000_000))
_MEMORY = "memory (bytes)"
_LATER = 1_000
"""Outlined requests that are rebuilt."""
_EACH_LATER = "one request rebuilt later (clock)"


def floor(text: str) -> None:
    """Read, hash, copy: the least that any import does."""
    from django.db import connection, transaction

    loads: Callable[[str], Any] = json.loads
    with suppress(ImportError):
        loads = import_module("orjson").loads
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE bench_floor (n bigint PRIMARY KEY, sha text, raw text)")
        with cursor.copy("COPY bench_floor FROM STDIN") as stream:
            for number, message in enumerate(loads(text)["messages"]):
                raw = json.dumps(message)
                stream.write_row((number, hashlib.sha256(raw.encode()).hexdigest(), raw))
        transaction.set_rollback(True)


def spent(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long some work took."""
    began = clock()
    work()
    return clock() - began


def line(label: str, items: int, seconds: float) -> None:
    """One figure."""
    print(
        f"  {label:<32}{items / seconds:>10,.0f} items/s   {seconds / items * 1e6:>8.1f} us an item"
    )


if __name__ == "__main__":
    sys.exit(main())
