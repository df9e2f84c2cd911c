"""Pages of a long session against those of a short one: bytes of the first answer, queries, time, in one run.

    python -m bench.console_pages --data DIR

DIR is the data folder of an instance whose Postgres runs (`manage.py up`); a tenant of its own is made in it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

SIZES = (500, 50_000)
ROUNDS = 15
MOST_BYTES = 150_000
MOST_RATIO = 1.5


def main() -> int:
    """Measure, print one JSON line for each page, and fail where a bound is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    os.environ["CTX_DATA_DIR"] = parser.parse_args().data
    from bench import seeding  # noqa: F401  Django is set up there

    passed = True
    for line in measured():
        print(json.dumps(line), flush=True)
        passed &= line["within"]
    return 0 if passed else 1


def measured() -> Iterator[dict[str, Any]]:
    """One line for each page."""
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    from ctxengine.ledger.models import Membership, Tenant

    settings.ALLOWED_HOSTS = ["testserver"]
    slug = f"bench-{uuid.uuid4().hex[:8]}"
    now = datetime.now(UTC)
    tenant = Tenant.objects.create(id=uuid.uuid4(), slug=slug, name=slug, created_at=now)
    person = get_user_model().objects.create_user(slug, password=uuid.uuid4().hex)
    Membership.objects.create(tenant=tenant, user=person, role="viewer", created_at=now)
    client = Client()
    client.force_login(person)
    for engine, pages in (("suffix", PAGES), ("working_set", PLANNED_PAGES)):
        worlds = {size: long_session(tenant.id, size, engine=engine) for size in SIZES}
        for name, path in pages.items():
            addresses = {
                size: f"/t/{slug}/" + path.format(session=session, request=request)
                for size, (session, request) in worlds.items()
            }
            yield {"page": name} | _compared(client, addresses, grows=engine == "working_set")


def _analyze() -> None:
    """What autovacuum does within a minute: a session that was filled in a second is in no statistics yet."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE event, body, item, unit")


PAGES = {
    "request": "requests/{request}/",
    "request items": "requests/{request}/items/",
    "request json": "requests/{request}/json/",
    "request change": "requests/{request}/change/",
    "request events": "requests/{request}/events/",
    "request take away": "requests/{request}/take-away/",
    "session": "sessions/{session}/",
    "events": "sessions/{session}/events/",
    "state": "sessions/{session}/state/",
    "plan": "sessions/{session}/plan/",
    "epochs": "sessions/{session}/epochs/",
    "turns": "sessions/{session}/turns/",
    "settings": "sessions/{session}/settings/",
    "item": "sessions/{session}/items/3.0/",
    "event body": "sessions/{session}/events/3/",
    "session peek": "sessions/{session}/f/peek/",
    "request peek": "requests/{request}/f/peek/",
}
"""Every page of a request and of a session that reads its log. Compactions are left out: the short session has none to show."""


PLANNED_PAGES = {"turns seen by": "sessions/{session}/turns/seen-by/"}
"""Pages that sessions of the engine `working_set` alone have something on: a plan made anew over every closed turn. Its time
may grow as the session does and no faster; its bytes may not."""


def long_session(tenant: UUID, items: int, *, engine: str = "suffix") -> tuple[UUID, UUID]:
    """A session with so many items and one request built over them."""
    from bench.seeding import fill
    from ctxengine.service.assemble import assemble
    from ctxengine.service.open_session import open_session
    from ctxengine.service.specs import (
        Actor,
        AgentRef,
        Assemble,
        Content,
        ModelRef,
        OpenSession,
        StartRun,
    )
    from ctxengine.service.start_run import start_run

    actor = Actor(tenant, "system")
    opened = open_session(
        actor=actor,
        spec=OpenSession(
            model=ModelRef(provider="openai", name="gpt-4o"),
            agent=AgentRef(name="bench", version="1", instructions="You count parcels."),
            title=f"{items} items",
            engine=engine,
        ),
    )
    fill(str(opened.id), _messages(items))
    _analyze()
    run = start_run(actor=actor, session_id=opened.id, spec=StartRun(message=Content(raw="Go on.")))
    made = assemble(actor=actor, run_id=run.id, spec=Assemble())
    return opened.id, made.request_id


def _messages(items: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for number in range(items // 4):
        function = {"name": "read_log", "arguments": f'{{"n":{number}}}'}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"How many parcels went through gate {number % 9} at {number}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"gate {number % 9}: {number * 7} parcels\n" * 6},
            {"role": "assistant", "content": f"There were {number * 7} parcels."},
        ]  # fmt: skip
    return messages


def _compared(client: Any, addresses: dict[int, str], *, grows: bool) -> dict[str, Any]:
    """Sizes and queries of one answer each; the median of times taken turn by turn.

    Args:
        grows: whether the page reads the whole session by its nature.
    """
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    queries, sizes = {}, {}
    for size, address in addresses.items():
        client.get(address)
        with CaptureQueriesContext(connection) as seen:
            answer = client.get(address)
        if answer.status_code != 200:
            raise RuntimeError(f"{address} answered {answer.status_code}")
        queries[size], sizes[size] = len(seen), len(answer.content)
    taken: dict[int, list[float]] = {size: [] for size in addresses}
    for _ in range(ROUNDS):
        for size, address in addresses.items():
            began = time.perf_counter()
            client.get(address)
            taken[size].append(1000 * (time.perf_counter() - began))
    small, large = SIZES
    ms = {size: round(statistics.median(times), 1) for size, times in taken.items()}
    ratio = round(ms[large] / ms[small], 2)
    steady = queries[large] == queries[small] and ratio < MOST_RATIO
    return {
        "bytes": sizes,
        "queries": queries,
        "ms": ms,
        "ratio": ratio,
        "within": sizes[large] < MOST_BYTES and (ratio < large / small if grows else steady),
    }


if __name__ == "__main__":
    sys.exit(main())
