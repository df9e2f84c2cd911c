"""`manage.py add_person NAME`: somebody who may sign in to the console."""

from __future__ import annotations

import json
import secrets
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

_ROLES = ("viewer", "operator", "admin")


class Command(BaseCommand):
    """Lets a person into a tenant, or changes the role of one who is in it."""

    help = "Let a person into a tenant, which is made where it is not there yet."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("name", help="what they sign in with, such as an email address")
        parser.add_argument("--tenant", required=True, help="slug of the tenant")
        parser.add_argument(
            "--role", default="viewer", choices=_ROLES, help="viewer where left out"
        )
        parser.add_argument(
            "--password-stdin",
            action="store_true",
            help="read the password from the first line of stdin; otherwise one is made and printed",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Add and report; a password that was made is printed this once."""
        from ctxengine.service.add_person import add_person, person_is_known
        from ctxengine.service.specs import ServiceError

        name, tenant, role = options["name"], options["tenant"], options["role"]
        given = sys.stdin.readline().rstrip("\r\n") if options["password_stdin"] else ""
        if options["password_stdin"] and not given:
            raise CommandError("The first line of stdin is empty; it should hold the password.")
        made = "" if given or person_is_known(name) else secrets.token_urlsafe(16)
        try:
            new_tenant = add_person(
                actor_label="command:add_person",
                name=name,
                tenant=tenant,
                role=role,
                password=given or made,
            )
        except ServiceError as error:
            raise CommandError(error.detail) from error
        if options["json"]:
            line = {"name": name, "tenant": tenant, "role": role, "new_tenant": new_tenant}
            self.stdout.write(json.dumps({**line, "password": made or None}))
            return
        self.stdout.write(f"{name} is {role} of {tenant}{', a new tenant' if new_tenant else ''}.")
        if made:
            self.stdout.write(f"The password, shown this once: {made}")
