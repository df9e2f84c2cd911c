"""`manage.py import_transcripts`: foreign transcripts into the ledger, with a repair report."""

from __future__ import annotations

import json
import stat
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option

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
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Import every file in turn."""
        from ctxengine.service.bootstrap import actor_for

        actor = actor_for(options["tenant"])
        statuses: Counter[str] = Counter()
        for path, problem in _files(options["paths"]):
            outcome = self._import(actor, path, problem, dry_run=options["dry_run"])
            statuses[outcome.status] += 1
            if options["json"]:
                about = {"path": str(path), "dry_run": options["dry_run"]}
                self.stdout.write(json.dumps(outcome.as_json() | about))
            else:
                self._print(path, outcome, options["dry_run"])
            self.stdout.flush()
        if not options["json"]:
            found = ", ".join(f"{count} {name}" for name, count in sorted(statuses.items()))
            self.stdout.write(f"{sum(statuses.values())} files: {found or 'none found'}")
        if statuses["refused"]:
            raise SystemExit(1)

    def _import(self, actor: Actor, path: Path, problem: str, *, dry_run: bool) -> ImportOutcome:
        from ctxengine.service.import_transcript import ImportOutcome, import_path

        if problem:
            return ImportOutcome("refused", path.name, "", reason=problem)
        bar = _Bar(path.name, self.stderr if sys.stderr.isatty() else None)
        outcome = import_path(actor=actor, path=path, dry_run=dry_run, progress=bar.show)
        bar.clear()
        return outcome

    def _print(self, path: Path, outcome: ImportOutcome, dry_run: bool) -> None:
        if outcome.status == "refused":
            self.stdout.write(f"{path}: refused. {outcome.reason}")
            return
        would = "would be imported" if dry_run and outcome.status == "imported" else outcome.status
        self.stdout.write(
            f"{path}: {would} as {outcome.format}, {len(outcome.session_ids)} session(s); "
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


def _files(paths: list[Path]) -> Iterator[tuple[Path, str]]:
    """Every file to try, and why not for what is found but cannot be one; folders in name order."""
    for path in paths:
        if path.is_dir():
            yield from _in_folder(path, path.resolve())
        elif path.is_symlink() or path.exists():
            yield path, _problem_of(path)
        else:
            raise CommandError(f"There is no file or folder {path}.")


def _in_folder(folder: Path, given: Path) -> Iterator[tuple[Path, str]]:
    """The files below a folder; `given` is what the caller named, and no link leads out of it."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        yield folder, f"The folder cannot be read: {error.strerror or error}."
        return
    for entry in entries:
        if entry.is_symlink() and entry.is_dir():
            yield entry, "It is a link to a folder; links are followed to files only."
        elif entry.is_dir():
            yield from _in_folder(entry, given)
        elif entry.is_symlink() and entry.exists() and not entry.resolve().is_relative_to(given):
            yield entry, "It is a link to a file outside the folder that was given; name that file."
        else:
            yield entry, _problem_of(entry)


def _problem_of(path: Path) -> str:
    """Why a path is no file to read; empty for one that is."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"It cannot be read: {error.strerror or error}."
    return "" if stat.S_ISREG(mode) else "It is no regular file."
