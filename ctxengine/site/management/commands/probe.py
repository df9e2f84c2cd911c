"""`manage.py probe PROVIDER/MODEL`: the capacity ladder, now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option


class Command(BaseCommand):
    """Measures what a model can use, and keeps the profile where sessions read it."""

    help = "Measure how much of its window a model can use, and keep the profile."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("model", help="PROVIDER/MODEL, such as ollama/qwen3:8b")
        parser.add_argument(
            "--session",
            "--plan",
            type=UUID,
            metavar="SESSION",
            help="probe behind this session's prefix (--plan is the same)",
        )
        parser.add_argument(
            "--largest",
            "--max",
            type=int,
            metavar="TOKENS",
            help="highest prompt to try (--max is the same)",
        )
        parser.add_argument(
            "--time", type=float, default=600.0, metavar="SECONDS", help="time box (600)"
        )
        parser.add_argument(
            "--hosted", action="store_true", help="agree to what a hosted model costs"
        )
        parser.add_argument(
            "--exact",
            action="store_true",
            help="ask this very model, not the cheapest of its hosted family",
        )
        parser.add_argument("--tenant", help="slug of the tenant (the only one, else the demo's)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_data_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Probe and report."""
        from ctxengine.service.bootstrap import actor_for
        from ctxengine.service.probe.run_probe import ProbeWanted, run_probe
        from ctxengine.service.specs import Actor, ServiceError

        provider, slash, model = options["model"].partition("/")
        if not slash or not provider or not model:
            raise CommandError("Name the model as PROVIDER/MODEL, for example ollama/qwen3:8b.")
        if options["largest"] is not None and options["largest"] < 500:
            raise CommandError("--largest is a number of tokens, at least 500.")
        wanted = ProbeWanted(
            provider=provider,
            model=model,
            session_id=options["session"],
            largest=options["largest"],
            time_box_s=options["time"],
            hosted=options["hosted"],
            exact=options["exact"],
        )
        try:
            actor = Actor(actor_for(options["tenant"]).tenant_id, "command:probe")
            profile = run_probe(actor=actor, wanted=wanted, seen=self._tell)
        except ServiceError as error:
            raise CommandError(error.detail) from error
        if options["json"]:
            self.stdout.write(profile.model_dump_json())
            return
        horizon = profile.horizon
        how = "native calls" if horizon.native_calls else "calls written as text"
        stopped, sibling = profile.provenance.stopped, profile.provenance.measured_on
        self.stdout.write(
            f"{provider}/{model}: follows instructions up to {horizon.tokens:,} tokens "
            f"(confidence {horizon.confidence:.2f}, {how}) of a declared window of {profile.declared_window:,}; "
            f"cache: {profile.cache.value}{f'; ended early: {stopped}' if stopped else ''}"
            f"{f'; measured on {sibling}' if sibling else ''}."
        )

    def _tell(self, seen: Sequence[Any], following: Any) -> None:
        newest = seen[-1] if seen else None
        if newest is not None:
            self.stderr.write(
                f"{newest.tokens:>9,} tokens  {newest.grade.value:<6} {newest.latency_ms:>7,} ms"
            )
        if following is None:
            self.stderr.write("cache ...")
