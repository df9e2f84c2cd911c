"""`manage.py apply_retention`: take away what has passed its keeping time, or say what would go."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option


class Command(BaseCommand):
    """One JSON object: by kind, its days and how much goes."""

    help = "Take away what has passed its keeping time; a worker does the same once a day."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--tenant", help="the tenant's slug (default: demo, or the only one)")
        parser.add_argument("--dry-run", action="store_true", help="only count what would go")
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Apply or count, and print what."""
        from ctxengine.service.bootstrap import actor_for
        from ctxengine.service.retention.apply import apply_retention, due
        from ctxengine.service.retention.content import LeftBehind
        from ctxengine.service.retention.rules import keeping_times
        from ctxengine.service.specs import ServiceError

        try:
            actor = actor_for(options["tenant"])
            times = keeping_times(actor.tenant_id)
            dry = options["dry_run"]
            counted = due(actor.tenant_id) if dry else apply_retention(actor=actor)
        except ServiceError as error:
            raise CommandError(error.detail) from error
        except LeftBehind as error:
            raise CommandError(str(error)) from error
        told = {
            name: {"days": days or None, "due" if dry else "gone": counted[name]}
            for name, days in times.items()
        }
        self.stdout.write(json.dumps({"dry_run": dry, "kinds": told}))
