"""The form of the replay lab: which session, under which engines, policies and models."""

from __future__ import annotations

from uuid import UUID

from django.http import QueryDict

from ctxengine.engine.history.peers.policies import PEERS
from ctxengine.engine.wire.registry import PROVIDER_API
from ctxengine.ledger.models import SessionRow
from ctxengine.ledger.queries.sessions import models_of_sessions, sessions_found
from ctxengine.service.replay.engines import LAB_ENGINES, OWN_ENGINES
from ctxengine.service.replay.wanted import ReplaySettings, ReplayWanted
from inspector.access import Viewer
from inspector.lab_contexts import Choice, LabForm

COMPARED = ("anthropic/claude-sonnet-4-6", "openai/gpt-5.4")
"""Models that are offered whatever a tenant has used."""
MODELS_SHOWN = 8
TICKED = (*OWN_ENGINES, "sliding_window")
"""What is compared unless somebody says otherwise: ours, and what most libraries do."""
WHAT_IFS = ("budget", "ttl", "turn_gap", "low_water")


def form_for(
    viewer: Viewer, *, find: str, session: str, given: QueryDict | None, ttl: str = ""
) -> LabForm:
    """The form, as it was sent where that was refused.

    Args:
        session: id of the chosen session; empty for none.
        given: what was sent; None for a fresh form.
        ttl: life of cache entries that a fresh form begins with.
    """
    chosen = _session(viewer, session)
    found = sessions_found(viewer.tenant_id, find)
    others = [row for row in found if chosen is None or row.id != chosen.id]
    own = f"{chosen.provider}/{chosen.model}" if chosen is not None else ""
    names = [own, *models_of_sessions(viewer.tenant_id), *COMPARED]
    offered = [name for name in dict.fromkeys(names) if name.partition("/")[0] in PROVIDER_API]
    ticked = given.getlist("model") if given is not None else [own or COMPARED[0]]
    return LabForm(
        find=find,
        sessions=(*(((chosen, True),) if chosen else ()), *((row, False) for row in others)),
        engines=_engines(given.getlist("engine") if given is not None else TICKED),
        models=tuple(Choice(name, name in ticked) for name in offered[:MODELS_SHOWN]),
        other_models=given.get("models", "") if given is not None else "",
        given={name: given.get(name, "") for name in WHAT_IFS}
        if given is not None
        else {"ttl": ttl},
    )


def wanted_by(given: QueryDict) -> ReplayWanted:
    """What a form asks for.

    Raises:
        ValidationError: a field of it cannot be used.
    """
    others = (part.strip() for part in given.get("models", "").split(","))
    models = dict.fromkeys([*given.getlist("model"), *filter(None, others)])
    settings = {name: given.get(name, "").replace(",", "").strip() or None for name in WHAT_IFS}
    return ReplayWanted(
        session=given.get("session", "").strip(),  # type: ignore[arg-type]
        engines=tuple(given.getlist("engine")),
        models=tuple(models),
        settings=ReplaySettings.model_validate(settings),
    )


def _session(viewer: Viewer, session: str) -> SessionRow | None:
    try:
        wanted = UUID(session)
    except ValueError:
        return None
    return SessionRow.objects.filter(tenant_id=viewer.tenant_id, id=wanted).first()


def _engines(ticked: tuple[str, ...] | list[str]) -> tuple[tuple[str, tuple[Choice, ...]], ...]:
    groups: dict[str, list[Choice]] = {}
    for engine in LAB_ENGINES.values():
        if engine.driver is not None:
            heading = "Our engines"
        elif engine.name in PEERS:
            heading = "Other policies, by their documentation"
        else:
            heading = "Libraries that are installed here"
        choice = Choice(engine.name, engine.name in ticked, engine.words)
        groups.setdefault(heading, []).append(choice)
    return tuple((heading, tuple(choices)) for heading, choices in groups.items())
