"""Import of a long transcript: reading, deriving, rebuilding the requests, COPY; items a second of each, and peak memory.

Usage:
    python -m bench.importing [--items 20000]

The transcript is the generator's own. Reading and COPY are measured by themselves; deriving (decode, count, hash, chain) is
measured without requests, and once more with every request rebuilt, which is what an import does.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def main(argv: list[str] | None = None) -> int:
    """Measure on a Postgres of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=20_000)
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
            measure(args.items)
        finally:
            from django.db import connections

            connections.close_all()
            server.stop()
    return 0


def measure(items: int) -> None:
    """Print one line for each stage."""
    from django.core.management import call_command
    from django.db import transaction

    from ctxengine.engine.importers.registry import read
    from ctxengine.ledger.bulk import write_log
    from ctxengine.ledger.models import Tenant
    from ctxengine.service.import_transcript import import_file
    from ctxengine.service.reconstruct import Reconstruction
    from ctxengine.service.sample_data.long_session import long_session
    from ctxengine.service.specs import Actor

    call_command("migrate", interactive=False, verbosity=0)
    tenant = Tenant.objects.create(
        id=uuid.uuid4(), slug="bench", name="Bench", created_at=datetime.now(UTC)
    )
    text = long_session(items)
    print(f"{items:,} items, {len(text):,} characters, {len(text) // items:,} characters an item")
    began = time.thread_time()
    read(text, name="long.json")
    line("reading", items, time.thread_time() - began)

    class DerivedOnly(Reconstruction):
        def _request(self, entry: Any) -> None:
            """No request: deriving alone."""

    made = None
    for label, kind in (
        ("deriving and chaining", DerivedOnly),
        ("the same with every request", Reconstruction),
    ):
        # A reconstruction lets go of what it has taken in, so each reads the text anew.
        (foreign,) = read(text, name="long.json").sessions
        began = time.thread_time()
        made = kind(
            tenant.id, foreign, file_sha256="0" * 64, format="openai_chat", now=datetime.now(UTC)
        ).run()
        line(label, items, time.thread_time() - began)
    assert made is not None
    print(f"  {len(made.requests):,} requests were rebuilt")
    began = time.perf_counter()
    with transaction.atomic():
        write_log(tenant.id, made.session.id, made.log.stored())
        transaction.set_rollback(True)
    line("COPY of the log (wall time)", items, time.perf_counter() - began)
    del made
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    import_file(actor=Actor(tenant.id, "bench"), name="long.json", data=text.encode())
    line("the whole import (wall time)", items, time.perf_counter() - began)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"  peak resident memory {after / 1024:,.0f} MiB ({before / 1024:,.0f} before); "
        f"the file has {len(text) / 2**20:,.1f} MiB"
    )


def line(label: str, items: int, seconds: float) -> None:
    """One figure."""
    print(
        f"  {label:<32}{items / seconds:>10,.0f} items/s   {seconds / items * 1e6:>8.1f} us an item"
    )


if __name__ == "__main__":
    sys.exit(main())
