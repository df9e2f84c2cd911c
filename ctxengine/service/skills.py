"""Skills of a session: offered when it opens, loaded by the model, read for each request (spec, rows 7 and 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.skills import LoadedSkill, PinnedSkill, skill_text
from ctxengine.engine.ports import SessionLog, TokenCounter
from ctxengine.engine.trust.levels import Trust, needs_envelope
from ctxengine.engine.trust.model_view import model_view
from ctxengine.service.specs import ServiceError, SkillSpec


class Offer(NamedTuple):
    """A session's skills before it is opened."""

    pinned: tuple[PinnedSkill, ...]
    drafts: tuple[EventDraft, ...]
    """One event per skill, each with its body."""


def owner_of(trust: Trust, principal: str) -> str:
    """Whose erasure takes a skill's body along: the configuration's belongs to nobody, any other to the principal."""
    return principal if needs_envelope(trust) else ""


def offer(
    specs: Sequence[SkillSpec],
    *,
    counter: TokenCounter,
    nonce_key: bytes,
    first: int,
    principal: str = "",
) -> Offer:
    """Skills as a plan pins them, and the events that hold their bodies.

    Args:
        first: sequence of the first of those events.
        principal: on whose behalf the session works.

    Raises:
        ServiceError: 422 when two skills share a name, or one claims the platform's own trust.
    """
    pinned: list[PinnedSkill] = []
    drafts: list[EventDraft] = []
    for place, spec in enumerate(sorted(specs, key=lambda spec: spec.name)):
        name = model_view(spec.name)
        if any(name == known.name for known in pinned):
            raise ServiceError("duplicate_skill", 422, f"Two skills are named {name!r}.")
        if spec.trust is Trust.PLATFORM:
            raise ServiceError(
                "trust_above_ceiling",
                422,
                f"The skill {name!r} claims {spec.trust.value}; a skill is at most "
                f"{Trust.TRUSTED_CONFIGURATION.value}.",
            )
        sequence = first + place
        loaded = LoadedSkill(name, spec.body, spec.trust, sequence, 0)
        tokens = counter.text(skill_text(loaded, nonce_key))
        pinned.append(
            PinnedSkill(
                name=name,
                description=model_view(spec.description),
                trust=spec.trust,
                sequence=sequence,
                digest=sha256_hex(spec.body.encode("utf-8", "surrogatepass")),
                body_tokens=tokens,
            )
        )
        drafts.append(
            EventDraft(
                type=EventType.SKILL_OFFERED,
                trust=spec.trust,
                payload=_payload(name, spec.trust, tokens, counter.label),
                body=spec.body,
                owner=owner_of(spec.trust, principal),
            )
        )
    return Offer(tuple(pinned), tuple(drafts))


def load_draft(
    log: SessionLog, skill: PinnedSkill, run: str, *, principal: str = ""
) -> EventDraft | None:
    """The event that loads a skill; None when its body was erased. The copy goes with the original."""
    (offered,) = log.events(after=EventSeq(skill.sequence - 1), limit=1)
    text = log.body(offered.body.id) if offered.body is not None else None
    if text is None:
        return None
    counted_by = offered.payload["counter"]
    payload = _payload(skill.name, skill.trust, skill.body_tokens, counted_by)
    return EventDraft(
        type=EventType.SKILL_LOADED,
        trust=skill.trust,
        run=run,
        payload=payload | {"offered": skill.sequence},
        body=text,
        owner=owner_of(skill.trust, principal),
    )


def loads(log: SessionLog) -> list[EventRecord]:
    """The loads of a session, oldest first."""
    return list(reversed(log.every(EventType.SKILL_LOADED)))


def loaded_skills(
    log: SessionLog, *, until: int, counter: TokenCounter, nonce_key: bytes
) -> tuple[LoadedSkill, ...]:
    """Bodies that stand in a request which saw the log up to `until`, in load order, as its model counts them.

    What was erased since it was loaded leaves the requests that are built from here on.
    """
    found = []
    for event in loads(log):
        if event.sequence > until:
            continue
        skill = _loaded(log, event)
        if skill.erased:
            continue
        if event.payload["counter"] != counter.label:
            skill = replace(skill, tokens=counter.text(skill_text(skill, nonce_key)))
        found.append(skill)
    return tuple(found)


def skills_at(log: SessionLog, sequences: Sequence[int]) -> tuple[LoadedSkill, ...]:
    """The bodies that a recorded request carried, by the events that loaded them."""
    if not sequences:
        return ()
    wanted = set(sequences)
    return tuple(_loaded(log, event) for event in loads(log) if event.sequence in wanted)


def _loaded(log: SessionLog, event: EventRecord) -> LoadedSkill:
    text = log.body(event.body.id) if event.body is not None else None
    return LoadedSkill(
        name=event.payload["name"],
        text=text or "",
        trust=Trust(event.payload["trust"]),
        sequence=event.sequence,
        tokens=event.payload["tokens"],
        erased=text is None,
    )


def _payload(name: str, trust: Trust, tokens: int, counter: str) -> dict[str, object]:
    return {
        "format": ContentFormat.TEXT.value,
        "name": name,
        "trust": trust.value,
        "tokens": tokens,
        "counter": counter,
    }
