"""`manage.py import_transcripts`: foreign transcripts into the ledger, with a repair report."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

if TYPE_CHECKING:
    from ctxengine.service.import_transcript import ImportOutcome
    from ctxengine.service.specs import Actor


class Command(BaseCommand):
    """Imports what it can, names the rest with the reason, and ends non-zero when anything was refused."""

    help = "Import transcripts (files or folders) and print a repair report."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("paths", nargs="+", type=Path, help="files or folders")
        parser.add_argument("--tenant", help="the tenant's slug (default: demo, or the only one)")
        parser.add_argument("--dry-run", action="store_true", help="report and write nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON line per file")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import every file in turn."""
        from ctxengine.service.bootstrap import actor_for

        actor = actor_for(options["tenant"])
        statuses: Counter[str] = Counter()
        for path in _files(options["paths"]):
            outcome = self._import(actor, path, dry_run=options["dry_run"])
            statuses[outcome.status] += 1
            if options["json"]:
                self.stdout.write(json.dumps(outcome.as_json() | {"dry_run": options["dry_run"]}))
            else:
                self._print(outcome, options["dry_run"])
        if not options["json"]:
            found = ", ".join(f"{count} {name}" for name, count in sorted(statuses.items()))
            self.stdout.write(f"{sum(statuses.values())} files: {found or 'none found'}")
        if statuses["refused"]:
            raise SystemExit(1)

    def _import(self, actor: Actor, path: Path, *, dry_run: bool) -> ImportOutcome:
        from ctxengine.service.import_transcript import (
            MAX_FILE_BYTES,
            ImportOutcome,
            import_file,
        )

        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            reason = f"The file holds {size:,} bytes; at most {MAX_FILE_BYTES:,} are read."
            return ImportOutcome("refused", path.name, "", reason=reason)
        bar = _Bar(path.name, self.stderr if sys.stderr.isatty() else None)
        outcome = import_file(
            actor=actor,
            name=path.name,
            data=path.read_bytes(),
            dry_run=dry_run,
            progress=bar.show,
        )
        bar.clear()
        return outcome

    def _print(self, outcome: ImportOutcome, dry_run: bool) -> None:
        if outcome.status == "refused":
            self.stdout.write(f"{outcome.name}: refused. {outcome.reason}")
            return
        would = "would be imported" if dry_run and outcome.status == "imported" else outcome.status
        self.stdout.write(
            f"{outcome.name}: {would} as {outcome.format}, {len(outcome.session_ids)} session(s); "
            f"{outcome.items_in} items in = {outcome.items_kept} kept + {outcome.items_set_aside} set aside"
        )
        counts: Counter[tuple[str, str]] = Counter()
        for line in outcome.report:
            counts[line["action"], line["code"]] += 1
        for (action, code), count in sorted(counts.items()):
            self.stdout.write(f"  {action} {code}: {count}")


class _Bar:
    """One line of progress on a terminal; nothing elsewhere."""

    def __init__(self, name: str, out: Any) -> None:
        self.name = name
        self.out = out

    def show(self, phase: str, done: int, total: int) -> None:
        if self.out is not None and (done % 50 == 0 or done == total):
            share = done * 30 // max(1, total)
            self.out.write(
                f"\r{self.name} {phase} [{'#' * share}{'.' * (30 - share)}] {done}/{total}",
                ending="",
            )

    def clear(self) -> None:
        if self.out is not None:
            self.out.write("\r\x1b[K", ending="")


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(entry for entry in path.rglob("*") if entry.is_file())
        elif path.is_file():
            yield path
        else:
            raise CommandError(f"There is no file or folder {path}.")
