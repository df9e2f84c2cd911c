"""`manage.py export_session`: a session in the format of another tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.engine.exporters.registry import FORMATS
from ctxengine.site.commandline import add_data_option


class Command(BaseCommand):
    """Prints the document, or writes it to a file; what it could not hold goes to the error output."""

    help = "Export a session as OpenAI chat, Anthropic messages or OpenTelemetry GenAI spans."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("session", type=UUID, help="id of the session")
        parser.add_argument(
            "--format", choices=FORMATS, default="", help="default: what holds most of the session"
        )
        parser.add_argument("--output", type=Path, help="file to write (default: standard output)")
        parser.add_argument("--tenant", help="the tenant's slug (default: demo, or the only one)")
        parser.add_argument("--raw", action="store_true", help="leave secrets unmasked")
        parser.add_argument(
            "--json", action="store_true", help="print one object: format, document, left_out"
        )
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Export and report."""
        from ctxengine.service.bootstrap import actor_for
        from ctxengine.service.export_session import export_session
        from ctxengine.service.specs import ServiceError

        try:
            made = export_session(
                actor=actor_for(options["tenant"]),
                session_id=options["session"],
                format=options["format"],
                raw=options["raw"],
            )
        except ServiceError as error:
            raise CommandError(error.detail) from error
        text = made.text
        if options["json"]:
            left_out = json.dumps([line.as_json() for line in made.left_out])
            text = f'{{"format":"{made.format}","left_out":{left_out},"document":{text}}}'
        if options["output"] is not None:
            try:
                options["output"].write_text(text, encoding="utf-8", newline="")
            except OSError as error:
                raise CommandError(
                    f"Cannot write {options['output']}: {error.strerror}."
                ) from error
        else:
            self.stdout.write(text)
        for line in () if options["json"] else made.left_out:
            self.stderr.write(f"left out {line.code}: {line.items}. {line.detail}")
