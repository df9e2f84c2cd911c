"""Calls the whole API as many times as wanted, with a key, and says what broke.

    python -m tests.fuzz.drive --calls 2000 [--seed 1]

Most calls are generated from the API's own OpenAPI document, right ones and wrong ones in turn; the rest are the loop's own
calls made hostile. Addresses hold ids of the caller, of another tenant, or of nobody. No answer may be a 5xx, undocumented, or
hold anything of the other tenant, who must be unchanged in the end; jobs that the calls ask for are run, and none may meet a
defect.
Afterwards every chain is verified, sums are held against their parts, and requests are rebuilt. Exits with 1 where any of it
does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def main(argv: list[str] | None = None) -> int:
    """Fuzz on a Postgres of its own; gives the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--show", type=int, default=40, help="most defects printed")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="ctxengine-fuzz-") as folder:
        Path(folder).chmod(0o711)
        os.environ["CTX_DATA_DIR"] = folder
        os.environ.setdefault("CTX_LOG_LEVEL", "ERROR")
        from ctxengine.site import keys
        from ctxengine.site.postgres.server import EmbeddedPostgres

        keys.ensure(Path(folder))
        server = EmbeddedPostgres(Path(folder), durable=False)
        server.start()
        try:
            _set_up()
            from tests.fuzz.calls import Fuzzing

            with _a_model():
                fuzzing = Fuzzing(random.Random(args.seed))
                began = time.monotonic()
                fuzzing.run(args.calls)
                fuzzing.look_afterwards()
            return report(fuzzing, args, time.monotonic() - began)
        finally:
            from django.db import connections

            connections.close_all()
            server.stop()
            server.remove()


@contextmanager
def _a_model() -> Iterator[None]:
    """A model that jobs may call, on this machine."""
    from django.conf import settings

    from ctxengine.providers.adapters.secret import Secret
    from ctxengine.providers.strict_local.provider import StrictProvider
    from ctxengine.providers.strict_local.server import StrictServer

    with StrictServer(StrictProvider()) as model:
        settings.CTX_PROVIDER_URLS = {"anthropic": model.url, "openai": model.openai_url}
        settings.CTX_PROVIDER_KEYS = {"anthropic": Secret("k"), "openai": Secret("k")}
        yield


def _set_up() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.core.signals import request_finished, request_started
    from django.db import close_old_connections

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.CTX_JOB_SENDER = ""
    # One connection for all calls: making one for each takes longer than most answers.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    Path(settings.STATIC_ROOT).mkdir(exist_ok=True)
    call_command("migrate", interactive=False, verbosity=0)


def report(fuzzing: Any, args: argparse.Namespace, seconds: float) -> int:
    """Print one line of figures and every defect; gives the exit code."""
    for defect, count in fuzzing.defects.most_common(args.show):
        print(f"--- {count} times: {defect}\n{fuzzing.examples[defect]}")
    line = {
        "calls": fuzzing.calls,
        "seed": args.seed,
        "seconds": round(seconds),
        "answers": dict(sorted(fuzzing.statuses.items())),
        "operations": len(fuzzing.reached),
        "to_other_tenant": fuzzing.calls_to_other,
        "jobs_run": dict(fuzzing.jobs),
        **fuzzing.left,
        "defects": sum(fuzzing.defects.values()),
    }
    print(json.dumps(line))
    return 1 if fuzzing.defects else 0


if __name__ == "__main__":
    sys.exit(main())
