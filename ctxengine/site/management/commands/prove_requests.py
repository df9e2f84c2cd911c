"""`manage.py prove_requests`: rebuild recorded requests and compare hashes."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser


class Command(BaseCommand):
    """Ends non-zero when any request no longer rebuilds to its recorded hash."""

    help = "Rebuild recorded requests from the ledger and compare their hashes."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--all", action="store_true", help="every request")
        which.add_argument("--session", type=UUID, help="the requests of one session")
        which.add_argument("--request", type=UUID, help="one request")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prove and report."""
        from ctxengine.service.prove import prove_all

        verdicts: Counter[str] = Counter()
        different = []
        for replay in prove_all(session_id=options["session"], request_id=options["request"]):
            verdicts[replay.verdict] += 1
            if replay.verdict == "different":
                different.append(replay)
        total = sum(verdicts.values())
        if not total and not options["all"]:
            raise CommandError("There is no such request.")
        if options["json"]:
            summary = {
                "requests": total,
                "verdicts": dict(sorted(verdicts.items())),
                "different": [
                    {"request": str(replay.request_id), "why": replay.first_difference}
                    for replay in different
                ],
            }
            self.stdout.write(json.dumps(summary))
        else:
            for replay in different:
                self.stdout.write(f"request {replay.request_id}: {replay.first_difference}")
            found = ", ".join(f"{count} {name}" for name, count in sorted(verdicts.items()))
            self.stdout.write(f"{total} requests: {found or 'nothing to prove'}")
        if different:
            raise SystemExit(1)
