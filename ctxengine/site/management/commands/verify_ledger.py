"""`manage.py verify_ledger`: walk the hash chains."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option


class Command(BaseCommand):
    """Names the first bad event of every damaged session and ends non-zero when there is one."""

    help = "Walk the hash chain of every session (or one) and name the first bad event."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--session", type=UUID, help="one session's id")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Verify and report."""
        from ctxengine.service.verify import verify_chains

        reports = list(verify_chains(session_id=options["session"]))
        if options["session"] and not reports:
            raise CommandError(f"There is no session {options['session']}.")
        damaged = [report for report in reports if report.problem is not None]
        events = sum(report.events for report in reports)
        if options["json"]:
            summary = {
                "sessions": len(reports),
                "events": events,
                "damaged": [
                    {
                        "session": str(report.session),
                        "sequence": report.bad_sequence,
                        "problem": report.problem,
                    }
                    for report in damaged
                ],
            }
            self.stdout.write(json.dumps(summary))
        else:
            for report in damaged:
                self.stdout.write(
                    f"session {report.session}: event {report.bad_sequence} {report.problem}"
                )
            self.stdout.write(f"{len(reports)} sessions, {events} events, {len(damaged)} damaged")
        if damaged:
            raise SystemExit(1)
