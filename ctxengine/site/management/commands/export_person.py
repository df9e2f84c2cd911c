"""`manage.py export_person PRINCIPAL`: everything that is kept of one person."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option


class Command(BaseCommand):
    """Writes one JSON object a line, so that any amount can be written and read."""

    help = "Write everything that is kept of one person, one JSON object a line; the audit log says so."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("principal", help="the person's id, as runtimes name it")
        parser.add_argument("--note", required=True, help="why; it stands in the audit log")
        parser.add_argument("--tenant", help="the tenant's slug (default: demo, or the only one)")
        parser.add_argument("--output", type=Path, help="file to write (default: standard output)")
        parser.add_argument("--raw", action="store_true", help="leave secrets unmasked")
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Export, and count on stderr."""
        from ctxengine.service.bootstrap import actor_for
        from ctxengine.service.export_person import export_person
        from ctxengine.service.specs import ServiceError

        count = 0
        try:
            records = export_person(
                actor=actor_for(options["tenant"]),
                principal=options["principal"],
                note=options["note"],
                raw=options["raw"],
            )
            with _written_to(options["output"]) as out:
                for record in records:
                    out.write(json.dumps(record, ensure_ascii=True) + "\n")
                    count += 1
        except ServiceError as error:
            raise CommandError(error.detail) from error
        except OSError as error:
            raise CommandError(f"Cannot write {options['output']}: {error.strerror}.") from error
        self.stderr.write(f"{count} records", style_func=str)


@contextmanager
def _written_to(file: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that only its owner may read."""
    if file is None:
        yield sys.stdout
        return
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
        yield out
