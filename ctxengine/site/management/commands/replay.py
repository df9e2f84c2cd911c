"""`manage.py replay`: transcripts through the lab, one line for each engine, model and budget."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option

if TYPE_CHECKING:
    from ctxengine.service.replay.figures import CellTotals
    from ctxengine.service.replay.many import FileReplayed, Matrix

_NAMED = 4
"""The first columns say which cell it is; those behind them are figures."""
_COLUMNS = (
    ("engine", "engine", "{}"),
    ("model", "model", "{}"),
    ("budget", "budget", "{:,}"),
    ("window", "window", "{:,}"),
    ("cost", "cost $", "{:.4f}"),
    ("cost_ratio", "per token", "{:.3f}"),
    ("cached_ratio", "cached", "{:.1%}"),
    ("mean_tokens", "mean", "{:,}"),
    ("peak_tokens", "peak", "{:,}"),
    ("compactions", "cuts", "{:,}"),
    ("fidelity", "whole", "{:.1%}"),
    ("reachable", "reach", "{:,}"),
    ("gone", "gone", "{:,}"),
    ("refused", "refused", "{:,}"),
)


class Command(BaseCommand):
    """Calls no provider and writes nothing."""

    help = "Replay transcripts or a session under other engines, models and budgets, without calling a provider."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "what", nargs="+", metavar="PATH|SESSION", help="files, folders, or one session's id"
        )
        parser.add_argument(
            "--engine",
            default="suffix",
            metavar="NAME[,NAME]",
            help="engines and policies (suffix)",
        )
        parser.add_argument(
            "--model", required=True, metavar="NAME[,NAME]", help="models, as NAME or PROVIDER/NAME"
        )
        parser.add_argument(
            "--budget",
            metavar="TOKENS[,TOKENS]",
            help="tokens of a whole request (what the model and policy allow)",
        )
        parser.add_argument(
            "--ttl", choices=["5m", "1h"], help="life asked for the history's cache entries"
        )
        parser.add_argument(
            "--gap",
            type=float,
            metavar="SECONDS",
            help="what if so long passed between turns (as recorded)",
        )
        parser.add_argument(
            "--low-water",
            type=float,
            metavar="SHARE",
            help="what if a cut left this share of history's room",
        )
        parser.add_argument(
            "--each", action="store_true", help="a line for each conversation as well"
        )
        parser.add_argument(
            "--processes",
            type=int,
            default=0,
            metavar="N",
            help="processes for files (one for each core)",
        )
        parser.add_argument(
            "--tenant", help="the tenant's slug, for a session (default: demo, or the only one)"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object per line")
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Replay and report."""
        from ctxengine.service.replay.figures import merged
        from ctxengine.service.specs import ServiceError

        try:
            matrix = _matrix(options)
            session = _session_id(options["what"])
            found = (
                self._session(session, matrix, options)
                if session is not None
                else self._files(options["what"], matrix, options)
            )
        except ServiceError as error:
            raise CommandError(error.detail) from error
        lines: list[CellTotals] = []
        for name, cells in found:
            if options["each"]:
                self._print(cells, options["json"], {"transcript": name})
            lines.extend(cells)
        if not lines:
            raise CommandError(
                "No transcript was replayed: none of these holds a conversation in which a model was asked."
            )
        totals = merged(lines)
        self._print(totals, options["json"], {})
        if all(cell.skipped for cell in totals):
            raise CommandError("Nothing could be replayed: no engine, model and budget has room.")

    def _session(
        self, session: UUID, matrix: Matrix, options: dict[str, Any]
    ) -> list[tuple[str, list[CellTotals]]]:
        from ctxengine.service.bootstrap import actor_for
        from ctxengine.service.replay.from_ledger import source_of_session
        from ctxengine.service.replay.reading import reading_of

        source = source_of_session(actor=actor_for(options["tenant"]), session_id=session)
        reading = reading_of(source)
        bar, cells = _Bar(self.stderr, len(matrix)), []
        for cell in matrix.cells(reading):
            cells.append(cell)
            bar.show(len(cells), "cells")
        bar.clear()
        return [(source.name, cells)]

    def _files(
        self, what: Sequence[str], matrix: Matrix, options: dict[str, Any]
    ) -> list[tuple[str, list[CellTotals]]]:
        from ctxengine.service.replay.many import replay_files

        paths = list(_paths(what))
        processes = options["processes"] or os.cpu_count() or 1
        bar, found = _Bar(self.stderr, len(paths)), []
        for done, file in enumerate(replay_files(paths, matrix, processes=processes), start=1):
            bar.show(done, "files")
            if file.refused:
                bar.clear()
                self.stderr.write(f"{file.path}: left out. {file.refused}")
            found += _named(file)
        bar.clear()
        return found

    def _print(self, cells: Sequence[CellTotals], as_json: bool, more: dict[str, str]) -> None:
        rows = [cell.as_json() for cell in cells]
        if as_json:
            for row in rows:
                self.stdout.write(json.dumps(more | row))
        else:
            for name in more.values():
                self.stdout.write(name)
            self.stdout.write(table(rows))
            for row in rows:
                if row["skipped"]:
                    said = f"{row['engine']} on {row['model']}: not replayed. {row['skipped']}"
                    self.stdout.write(said)
        self.stdout.flush()


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows of figures as aligned columns."""
    texts = [[title for _, title, _ in _COLUMNS]]
    texts += [
        [
            form.format(row[name])
            if row[name] is not None and (place < _NAMED or not row["skipped"])
            else "-"
            for place, (name, _, form) in enumerate(_COLUMNS)
        ]
        for row in rows
    ]
    widths = [max(len(line[place]) for line in texts) for place in range(len(_COLUMNS))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if place < 2 else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in texts
    )


def _matrix(options: dict[str, Any]) -> Matrix:
    from pydantic import ValidationError

    from ctxengine.service.replay.engines import lab_engine
    from ctxengine.service.replay.many import Matrix
    from ctxengine.service.replay.models import lab_model
    from ctxengine.service.replay.wanted import ReplaySettings

    try:
        settings = tuple(
            ReplaySettings(
                budget=budget,
                ttl=options["ttl"],
                turn_gap=options["gap"],
                low_water=options["low_water"],
            )
            for budget in _numbers(options["budget"])
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise CommandError(
            f"--{str(first['loc'][0]).replace('_', '-')}: {first['msg']}."
        ) from error
    return Matrix(
        engines=tuple(lab_engine(name).name for name in _words(options["engine"])),
        models=tuple(lab_model(name) for name in _words(options["model"])),
        settings=settings,
        at=datetime.now(UTC),
    )


def _words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise CommandError("Name at least one engine and one model.")
    return list(dict.fromkeys(words))


def _numbers(text: str | None) -> list[int | None]:
    if text is None:
        return [None]
    try:
        return [int(word.replace("_", "")) for word in _words(text)]
    except ValueError as error:
        raise CommandError(f"--budget takes whole numbers of tokens, not {text!r}.") from error


def _session_id(what: Sequence[str]) -> UUID | None:
    if len(what) > 1 or Path(what[0]).exists():
        return None
    try:
        return UUID(what[0])
    except ValueError:
        return None


def _paths(what: Sequence[str]) -> Iterator[Path]:
    """Every file that is named, or lies in a folder that is; in name order."""
    for word in what:
        path = Path(word)
        if path.is_dir():
            yield from sorted(found for found in path.rglob("*") if found.is_file())
        elif path.is_file():
            yield path
        else:
            raise CommandError(f"There is no file, folder or session {word}.")


def _named(file: FileReplayed) -> list[tuple[str, list[CellTotals]]]:
    return list(file.sessions)


class _Bar:
    """One line of progress on a terminal; nothing elsewhere."""

    def __init__(self, out: Any, total: int) -> None:
        self._out = out if sys.stderr.isatty() else None
        self._total = max(1, total)

    def show(self, done: int, what: str) -> None:
        """Say how far it is."""
        if self._out is not None:
            share = done * 30 // self._total
            bar = f"{'#' * share}{'.' * (30 - share)}"
            self._out.write(f"\r[{bar}] {done}/{self._total} {what}", ending="")
            self._out.flush()

    def clear(self) -> None:
        """Give the line back."""
        if self._out is not None:
            self._out.write("\r\x1b[K", ending="")
