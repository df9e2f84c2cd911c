"""`manage.py add_person NAME`: somebody who may sign in to the console."""

from __future__ import annotations

import json
import secrets
import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option

if TYPE_CHECKING:
    from ctxengine.service.add_person import PersonAdded

_ROLES = ("viewer", "operator", "admin")
"""From the least to the most."""


class Command(BaseCommand):
    """Lets a person into a tenant, or changes the role of one who is in it."""

    help = "Let a person into a tenant, which is made where it is not there yet."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("name", help="what they sign in with, such as an email address")
        parser.add_argument("--tenant", required=True, help="slug of the tenant")
        parser.add_argument(
            "--role",
            choices=_ROLES,
            help="left out: a member's stays as it is, a newcomer is viewer",
        )
        parser.add_argument(
            "--password-stdin",
            action="store_true",
            help="read the password from the first line of stdin; otherwise one is made and printed",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Add and report; a password that was made is printed this once."""
        from ctxengine.service.add_person import add_person, person_is_known
        from ctxengine.service.specs import ServiceError

        name, tenant = options["name"], options["tenant"]
        given = sys.stdin.readline().rstrip("\r\n") if options["password_stdin"] else ""
        if options["password_stdin"] and not given:
            raise CommandError("The first line of stdin is empty; it should hold the password.")
        made = "" if given or person_is_known(name) else secrets.token_urlsafe(16)
        try:
            added = add_person(
                actor_label="command:add_person",
                name=name,
                tenant=tenant,
                role=options["role"],
                password=given or made,
            )
        except ServiceError as error:
            raise CommandError(error.detail) from error
        if options["json"]:
            line = {
                "name": name,
                "tenant": tenant,
                "role": added.role,
                "role_before": added.role_before or None,
                "new_tenant": added.new_tenant,
                "admins": added.admins,
            }
            self.stdout.write(json.dumps({**line, "password": made or None}))
        else:
            self.stdout.write(_told(name, tenant, added))
            if made:
                self.stdout.write(f"The password, shown this once: {made}")
        if not added.admins:
            self.stderr.write(
                f"{tenant} has no admin. Name one: manage.py add_person NAME --tenant {tenant} --role admin"
            )


def _told(name: str, tenant: str, added: PersonAdded) -> str:
    """One line: what the person is there now, and what they were."""
    if not added.role_before:
        return f"{name} is {added.role} of {tenant}{', a new tenant' if added.new_tenant else ''}."
    if added.role == added.role_before:
        return f"{name} is {added.role} of {tenant} already; nothing changed."
    raised = _ROLES.index(added.role) > _ROLES.index(added.role_before)
    return f"{name} is {added.role} of {tenant} now, {'raised' if raised else 'lowered'} from {added.role_before}."
