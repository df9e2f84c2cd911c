"""What a turn takes in Postgres, table by table, and what a session's age does to it.

    python -m bench.sizes [--sessions 10] [--turns 40]

On a Postgres of its own, sessions of so many turns with one tool call each are lived through the services; printed are the
bytes of a turn by table, indexes included, and the same for a session's first and second half.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path


def main(argv: list[str] | None = None) -> int:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--turns", type=int, default=40)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="ctxengine-sizes-") as folder:
        Path(folder).chmod(0o711)
        os.environ["CTX_DATA_DIR"] = folder
        os.environ.setdefault("CTX_LOG_LEVEL", "ERROR")
        from ctxengine.site import keys
        from ctxengine.site.postgres.server import EmbeddedPostgres

        keys.ensure(Path(folder))
        server = EmbeddedPostgres(Path(folder), durable=False)
        server.start()
        try:
            print(json.dumps(_measured(args.sessions, args.turns)))
        finally:
            from django.db import connections

            connections.close_all()
            server.stop()
            server.remove()
    return 0


def _measured(sessions: int, turns: int) -> dict[str, object]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    settings.CTX_JOB_SENDER = ""
    call_command("migrate", interactive=False, verbosity=0)
    from tests.shrinking import Shrinker

    empty = _bytes()
    first = Shrinker()
    lived = [first, *(Shrinker(actor=first.actor) for _ in range(sessions - 1))]
    halves = []
    for _ in range(2):
        before = _bytes()
        for runtime in lived:
            runtime.talk(turns // 2, size=4)
        after = _bytes()
        halves.append(sum(after.values()) - sum(before.values()))
    grown = {name: size - empty.get(name, 0) for name, size in _bytes().items()}
    lived_turns = sessions * (turns // 2) * 2
    of_turn = {name: round(size / lived_turns) for name, size in grown.items() if size}
    return {
        "sessions": sessions,
        "turns": lived_turns,
        "bytes_a_turn": sum(of_turn.values()),
        "by_table": dict(sorted(of_turn.items(), key=lambda pair: -pair[1])),
        "first_half": round(halves[0] / (lived_turns / 2)),
        "second_half": round(halves[1] / (lived_turns / 2)),
        **_content(lived_turns),
    }


def _content(turns: int) -> dict[str, int]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(sum(length), 0), count(*) FROM body")
        length, bodies = cursor.fetchone()
        cursor.execute("SELECT count(*) FROM event")
        (events,) = cursor.fetchone()
    return {
        "content_bytes_a_turn": round(length / turns),
        "bodies_a_turn": round(bodies / turns),
        "events_a_turn": round(events / turns),
    }


def _bytes() -> dict[str, int]:
    """Bytes of every table with its indexes, as they lie on disk."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, pg_total_relation_size(oid) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        )
        return dict(cursor.fetchall())


if __name__ == "__main__":
    sys.exit(main())
