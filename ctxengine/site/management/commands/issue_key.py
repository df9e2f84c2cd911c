"""`manage.py issue_key NAME`: an API key for a runtime."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option

_MOST_DAYS = 3650


class Command(BaseCommand):
    """Makes a key of a tenant and prints it, this once."""

    help = "Make an API key of a tenant and print it; it cannot be read again."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("name", help="what the key is for")
        parser.add_argument("--tenant", help="slug of the tenant (the only one, else the demo's)")
        parser.add_argument(
            "--scopes", default="runtime,read", help="runtime, read, operate, separated by commas"
        )
        parser.add_argument("--days", type=int, help="how long it is valid; for ever if left out")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Issue and print."""
        from ctxengine.service.bootstrap import actor_for
        from ctxengine.service.issue_key import issue_key
        from ctxengine.service.specs import Actor, ServiceError

        days = options["days"]
        if days is not None and not 1 <= days <= _MOST_DAYS:
            raise CommandError(f"--days is a whole number from 1 to {_MOST_DAYS}.")
        scopes = tuple(dict.fromkeys(word.strip() for word in options["scopes"].split(",")))
        try:
            tenant = actor_for(options["tenant"]).tenant_id
            issued = issue_key(
                actor=Actor(tenant, "command:issue_key"),
                name=options["name"],
                scopes=scopes,
                expires_in=None if days is None else timedelta(days=days),
            )
        except ServiceError as error:
            raise CommandError(error.detail) from error
        if options["json"]:
            line = {"key": issued.key, "prefix": issued.prefix, "scopes": sorted(scopes)}
            self.stdout.write(json.dumps(line))
        else:
            self.stdout.write(issued.key)
