"""`manage.py restore_drill FILE`: show that a dump can be lived on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option

_CHECKS = {"verify_ledger": ["--json"], "prove_requests": ["--all", "--json"]}


class Command(BaseCommand):
    """Restores a dump into a database of its own, walks every chain, proves every request, and removes it again."""

    help = "Restore a dump beside the database, verify the ledger and prove the requests in it, and remove it again."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("file", type=Path, help="a dump made by `manage.py backup` or pg_dump")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore, check, report; non-zero when a check finds anything."""
        from django.db import connection

        from ctxengine.site.backup import BackupFailed, restored, server_major

        file: Path = options["file"]
        if not file.is_file():
            raise CommandError(f"There is no file {file}.")
        began = time.monotonic()
        try:
            with restored(
                connection.settings_dict, file.absolute(), major=server_major()
            ) as scratch:
                found = {name: _check(name, scratch.url) for name in _CHECKS}
        except BackupFailed as error:
            raise CommandError(f"The dump could not be restored. {error}") from error
        passed = all(status == 0 for status, _ in found.values())
        report = {name: told for name, (_, told) in found.items()}
        report |= {"passed": passed, "seconds": round(time.monotonic() - began, 1)}
        if options["json"]:
            self.stdout.write(json.dumps(report))
        else:
            for name, (_, told) in found.items():
                self.stdout.write(f"{name}: {json.dumps(told)}")
            self.stdout.write(
                f"{'restored and sound' if passed else 'DAMAGED'}, {report['seconds']} s"
            )
        if not passed:
            raise SystemExit(1)


def _check(command: str, url: str) -> tuple[int, Any]:
    """One check in a process of its own: settings name the database once and for all."""
    done = subprocess.run(
        [sys.executable, "manage.py", command, *_CHECKS[command]],
        cwd=settings.BASE_DIR,
        env=os.environ | _same_instance() | {"DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return done.returncode or 1, {"failed": said}


def _same_instance() -> dict[str, str]:
    """The keys of this process, said outright: a folder without any would give the check's process keys of its own."""
    return {
        "CTX_DATA_DIR": str(settings.CTX_DATA_DIR),
        "CTX_SECRET_KEY": settings.SECRET_KEY,
        "CTX_FIELD_KEY": settings.CTX_FIELD_KEY,
    }
