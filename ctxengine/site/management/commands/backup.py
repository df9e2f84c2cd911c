"""`manage.py backup FILE`: the whole database in one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option


class Command(BaseCommand):
    """Writes a dump while everything goes on running; `restore_drill` shows that it can be lived on."""

    help = "Dump the whole database into one file; the keys are kept beside it by you."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("file", type=Path, help="where to write the dump; must not exist yet")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Dump and say what else a restore needs."""
        from django.db import connection

        from ctxengine.site.backup import BackupFailed, server_major, write_dump

        file: Path = options["file"]
        if file.exists():
            raise CommandError(f"{file} exists already; name another file.")
        if not file.absolute().parent.is_dir():
            raise CommandError(f"There is no folder {file.absolute().parent}.")
        try:
            size = write_dump(connection.settings_dict, file.absolute(), major=server_major())
        except (BackupFailed, OSError) as error:
            raise CommandError(f"No dump was written. {error}") from error
        if options["json"]:
            self.stdout.write(json.dumps({"file": str(file), "bytes": size}))
            return
        self.stdout.write(
            f"{file}: {size:,} bytes. Keep CTX_FIELD_KEY and CTX_SECRET_KEY (the folder `keys` of the data folder) with it:"
            " without the first, encrypted parts are lost."
        )
