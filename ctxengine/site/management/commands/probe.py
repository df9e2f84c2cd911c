"""`manage.py probe PROVIDER/MODEL`: the capacity ladder, now, and what a session would show of itself under the profile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ctxengine.site.commandline import add_data_option

if TYPE_CHECKING:
    from ctxengine.engine.capacity.profile import CapacityProfile
    from ctxengine.service.probe.run_probe import ProbeWanted
    from ctxengine.service.specs import Actor
    from ctxengine.service.turns.seen_by import SeenBy


class Command(BaseCommand):
    """Measures what a model can use, and keeps the profile where sessions read it."""

    help = "Measure how much of its window a model can use, and keep the profile."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("model", help="PROVIDER/MODEL, such as ollama/qwen3:8b")
        parser.add_argument(
            "--session",
            type=UUID,
            metavar="SESSION",
            help="probe behind this session's prefix",
        )
        parser.add_argument(
            "--plan",
            type=UUID,
            metavar="SESSION",
            help="probe behind this session's prefix, and print how its turns would stand under the profile",
        )
        parser.add_argument(
            "--about",
            default="",
            metavar="TEXT",
            help="what the run would be about that the plan is made for (nothing)",
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
        from ctxengine.service.access import session_of
        from ctxengine.service.bootstrap import actor_for
        from ctxengine.service.probe.run_probe import ProbeWanted, run_probe
        from ctxengine.service.specs import Actor, ServiceError

        provider, slash, model = options["model"].partition("/")
        if not slash or not provider or not model:
            raise CommandError("Name the model as PROVIDER/MODEL, for example ollama/qwen3:8b.")
        if options["largest"] is not None and options["largest"] < 500:
            raise CommandError("--largest is a number of tokens, at least 500.")
        session, plan = options["session"], options["plan"]
        if session is not None and plan is not None and session != plan:
            raise CommandError(
                "--session and --plan name two sessions; --plan alone probes behind its own, so leave out --session."
            )
        wanted = ProbeWanted(
            provider=provider,
            model=model,
            session_id=options["session"] or options["plan"],
            largest=options["largest"],
            time_box_s=options["time"],
            hosted=options["hosted"],
            exact=options["exact"],
        )
        try:
            actor = Actor(actor_for(options["tenant"]).tenant_id, "command:probe")
            if options["plan"] is not None:
                session_of(actor, options["plan"])
            profile = run_probe(actor=actor, wanted=wanted, seen=self._tell)
            planned = _planned(actor, options["plan"], wanted, options["about"])
        except ServiceError as error:
            raise CommandError(error.detail) from error
        if options["json"]:
            told = profile.model_dump(mode="json")
            if options["plan"] is not None:
                told["plan"] = None if planned is None else _plan_json(options["plan"], planned)
            self.stdout.write(json.dumps(told, ensure_ascii=False))
            return
        self._write_profile(profile)
        if options["plan"] is not None:
            self._write_plan(options["plan"], planned)

    def _write_profile(self, profile: CapacityProfile) -> None:
        horizon = profile.horizon
        how = "native calls" if horizon.native_calls else "calls written as text"
        stopped, sibling = profile.provenance.stopped, profile.provenance.measured_on
        self.stdout.write(
            f"{profile.provider}/{profile.model}: follows instructions up to {horizon.tokens:,} tokens "
            f"(confidence {horizon.confidence:.2f}, {how}) of a declared window of {profile.declared_window:,}; "
            f"cache: {profile.cache.value}{f'; ended early: {stopped}' if stopped else ''}"
            f"{f'; measured on {sibling}' if sibling else ''}."
        )

    def _write_plan(self, session: UUID, planned: SeenBy | None) -> None:
        if planned is None:
            self.stdout.write(f"Session {session}: its engine plans no turns by a profile.")
            return
        record, room = planned.record, planned.record.room
        self.stdout.write(
            f"Session {session}: {record.turns:,} closed turns, {record.tokens:,} tokens of {room.tokens:,} for them "
            f"({room.usable:,} usable, less {room.prefix:,} prefix, {room.tail:,} fresh rows, {room.turn:,} open turn)."
        )
        for line in _forms(planned):
            which = (
                f"turn {line['first']}"
                if line["turns"] == 1
                else f"turns {line['first']} to {line['last']}"
            )
            self.stdout.write(f"  {which}: {line['form'].replace('_', ' ')}")
        if planned.packet_missing:
            self.stdout.write("  The packet is not made yet; a run would make it at its start.")

    def _tell(self, seen: Sequence[Any], following: Any) -> None:
        newest = seen[-1] if seen else None
        if newest is not None:
            self.stderr.write(
                f"{newest.tokens:>9,} tokens  {newest.grade.value:<6} {newest.latency_ms:>7,} ms"
            )
        if following is None:
            self.stderr.write("cache ...")


def _planned(actor: Actor, session: UUID | None, wanted: ProbeWanted, about: str) -> SeenBy | None:
    """The plan of a session for the model as it is known now; None without a session, or where its engine plans nothing."""
    from ctxengine.service.turns.seen_by import seen_by

    if session is None:
        return None
    return seen_by(
        actor=actor,
        session_id=session,
        provider=wanted.provider,
        model=wanted.model,
        directive=about,
    )


def _forms(planned: SeenBy) -> list[dict[str, Any]]:
    from ctxengine.service.turns.seen_by import Forms

    return [
        {"form": f.form.value, "first": f.first, "last": f.last, "turns": f.last - f.first + 1}
        for f in Forms(planned.record).ranges()
    ]


def _plan_json(session: UUID, planned: SeenBy) -> dict[str, Any]:
    record = planned.record
    return {
        "session": str(session),
        "turns": record.turns,
        "tokens": record.tokens,
        "room": record.room.model_dump(mode="json"),
        "forms": _forms(planned),
        "packet_missing": planned.packet_missing,
    }
