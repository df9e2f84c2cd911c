"""`manage.py prove_requests`: rebuild recorded requests and compare hashes."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option

if TYPE_CHECKING:
    from ctxengine.service.specs import Replay

_REWRITTEN_AFTER_S = 0.2
"""Seconds between two states of a terminal's line."""
_TOLD_AFTER_S = 10.0
"""Seconds between two lines elsewhere, such as in a log."""


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
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prove and report."""
        from ctxengine.service.prove import count_requests, prove_all

        verdicts: Counter[str] = Counter()
        different: list[Replay] = []
        which = {"session_id": options["session"], "request_id": options["request"]}
        progress = _Progress(self.stderr, count_requests(**which))
        for replay in prove_all(**which):
            verdicts[replay.verdict] += 1
            progress.show(verdicts.total(), len(different))
            if replay.verdict == "different":
                different.append(replay)
        progress.clear()
        total = verdicts.total()
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


class _Progress:
    """How far it is, on the error output: a terminal's line is rewritten, elsewhere a line comes now and then."""

    def __init__(self, out: Any, total: int) -> None:
        self._out = out
        self._total = total
        self._rewrites = bool(out.isatty())
        self._next = time.monotonic() + (_REWRITTEN_AFTER_S if self._rewrites else _TOLD_AFTER_S)
        self._shown = False

    def show(self, done: int, different: int) -> None:
        now = time.monotonic()
        if now < self._next or done == self._total:
            return
        self._next = now + (_REWRITTEN_AFTER_S if self._rewrites else _TOLD_AFTER_S)
        line = f"{done:,} of {self._total:,} requests, {different} different"
        self._shown = True
        if self._rewrites:
            self._out.write(f"\r{line}\x1b[K", style_func=str, ending="")
        else:
            self._out.write(line, style_func=str)
        self._out.flush()

    def clear(self) -> None:
        if self._rewrites and self._shown:
            self._out.write("\r\x1b[K", style_func=str, ending="")
