"""One probe of one model: metadata, ladder, cache, profile (capacity spec 1). Run by a job or by the command line."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import transaction
from pydantic import Field

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.capacity.ladder import Sample
from ctxengine.engine.capacity.profile import CapacityProfile, Observation, metadata_profile
from ctxengine.ledger.models import PlanRow
from ctxengine.providers.adapters.contract import (
    Cancelled,
    Completion,
    ModelInfo,
    Prompt,
    PromptTool,
    ProviderError,
    never_cancelled,
)
from ctxengine.providers.adapters.registry import adapter_for
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.clock import utc_now
from ctxengine.service.probe.ladder import Climb, Prefix, World
from ctxengine.service.probe.profiles import hold_profile, is_local, keep_profile, newest_row
from ctxengine.service.probe.sibling import carried_over, cheapest_of_family
from ctxengine.service.refusals import refusing
from ctxengine.service.side_calls import side_call
from ctxengine.service.spec_base import Spec
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.wiring import counter_of, facts_about, log_of, plan_from, renderer_of

PROBE_VERSION = "probe@1"
SAMPLE_TIMEOUT_S = 900.0
"""A small model on a busy processor may read its largest rung for minutes."""
METADATA_TIMEOUT_S = 10.0
_LOOK_S = 0.25
"""How often a rest looks whether the probe is still wanted."""


class ProbeWanted(Spec):
    """What to probe."""

    provider: str
    model: str
    session_id: UUID | None = None
    """Probe behind the prefix of this session's plan instead of the ladder's own."""
    largest: int | None = Field(default=None, ge=500, le=4_000_000)
    """Highest prompt to try (tokens)."""
    time_box_s: float = Field(default=600.0, gt=0, le=86_400)
    hosted: bool = False
    """The operator has agreed to what a probe of a hosted model costs."""
    exact: bool = False
    """Ask this very model, though a cheaper one of its hosted family could be asked in its place."""


Seen = Callable[[Sequence[Observation], Sample | None], None]


def check_allowed(wanted: ProbeWanted) -> None:
    """Refuse a probe of nobody's model, or one that would cost money nobody agreed to (capacity spec 1, Cost control).

    Raises:
        ServiceError: 422 `unsupported_provider`; 409 `probe_not_allowed`.
    """
    with refusing():
        renderer_of(wanted.provider)
    if is_local(wanted.provider) or wanted.hosted or settings.CTX_PROBE_HOSTED == "full":
        return
    raise ServiceError(
        "probe_not_allowed",
        409,
        f"{wanted.provider} is a hosted provider, so that probing {wanted.model} costs money. Agree to it for this probe "
        "(hosted), or for all with CTX_PROBE_HOSTED=full.",
    )


def run_probe(
    *, actor: Actor, wanted: ProbeWanted, seen: Seen = lambda _seen, _next: None
) -> CapacityProfile:
    """Probe a model here and now, and keep its profile.

    Args:
        seen: told after each sample.

    Raises:
        ServiceError: 409 `probe_not_allowed` or `provider_failed` (with the provider's code); 404 for an unknown session.
    """
    try:
        profile = measure(actor=actor, wanted=wanted, seen=seen)
    except ProviderError as error:
        raise ServiceError(
            "provider_failed",
            409,
            f"The probe of {wanted.provider} ended: {error.detail}",
            provider_code=error.code,
        ) from error
    with transaction.atomic():
        hold_profile(actor.tenant_id, wanted.provider, wanted.model)
        # Turns may have taught it more while the ladder was climbed.
        profile = with_ratio(profile, actor.tenant_id)
        keep_profile(tenant_id=actor.tenant_id, profile=profile, session_id=wanted.session_id)
    return profile


def measure(
    *,
    actor: Actor,
    wanted: ProbeWanted,
    job_id: UUID | None = None,
    cancelled: Cancelled = never_cancelled,
    seen: Seen = lambda _seen, _next: None,
) -> CapacityProfile:
    """Climb the ladder with a model and say what was found; nothing is kept. No transaction is held while it runs.

    Args:
        job_id: the job that the calls belong to.
        cancelled: asked between samples, while one is awaited, and while it rests.
        seen: told after each sample.

    Raises:
        ServiceError: 409 `probe_not_allowed`; 404 for an unknown session.
        ProviderError: a sample could not be sent.
    """
    check_allowed(wanted)
    listed = _listed(wanted.provider)
    own = with_ratio(described(wanted.provider, wanted.model, listed), actor.tenant_id)
    asked = _asked(wanted, listed)
    known = own if asked == own.model else described(wanted.provider, asked, listed)
    prefix = _prefix(actor, wanted.session_id)
    started = time.monotonic()

    def send(prompt: Prompt) -> Completion:
        return side_call(
            tenant_id=actor.tenant_id,
            provider=wanted.provider,
            prompt=prompt,
            purpose="probe",
            prompt_version=PROBE_VERSION,
            session_id=wanted.session_id,
            job_id=job_id,
            timeout_s=SAMPLE_TIMEOUT_S,
            cancelled=cancelled,
        )

    world = World(
        send=send,
        nonce=lambda: secrets.token_hex(8),
        elapsed_s=lambda: time.monotonic() - started,
        now=lambda: utc_now().isoformat(),
        wait=partial(_rest, cancelled),
        cancelled=cancelled,
        seen=seen,
    )
    climb = Climb(
        profile=known,
        counter=counter_of(wanted.provider, asked),
        world=world,
        prefix=prefix,
        largest=wanted.largest,
        time_box_s=wanted.time_box_s,
    )
    found = climb.run()
    return found if asked == own.model else carried_over(own, found)


def _asked(wanted: ProbeWanted, listed: Sequence[ModelInfo]) -> str:
    """The model that the samples go to."""
    if wanted.exact or is_local(wanted.provider):
        return wanted.model
    names = [info.name for info in listed]
    return cheapest_of_family(wanted.provider, wanted.model, listed=names)


def with_ratio(known: CapacityProfile, tenant_id: UUID) -> CapacityProfile:
    """The profile with what receipts have taught of the model's tokens: a ladder of filler knows less of that."""
    before = newest_row(tenant_id, known.provider, known.model)
    if before is None:
        return known
    ratio = CapacityProfile.model_validate(before.profile).tokens_per_char_millionths
    return known.model_copy(update={"tokens_per_char_millionths": ratio})


def _rest(cancelled: Cancelled, seconds: float) -> None:
    """Rest for so long, or until nobody wants the probe any more."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not cancelled():
        time.sleep(min(left, _LOOK_S))


def _listed(provider: str) -> Sequence[ModelInfo]:
    """What the provider lists; nothing where it does not answer.

    Raises:
        ProviderError: the provider cannot be called at all.
    """
    try:
        return adapter_for(provider).models(timeout_s=METADATA_TIMEOUT_S)
    except ProviderError as error:
        if error.code in {"no_key", "not_allowed", "not_supported", "auth"}:
            raise
        return ()


def described(provider: str, model: str, listed: Sequence[ModelInfo]) -> CapacityProfile:
    """The metadata rung: what the provider says of the model, else what is known of its name."""
    facts = facts_about(provider, model)
    info = next((info for info in listed if info.name == model), None)
    return metadata_profile(
        provider=provider,
        model=model,
        declared_window=(info.window if info else None) or facts.window,
        max_output=(info.max_output if info else None) or facts.max_output,
        metadata_digest=_digest(info) if info else "",
    )


def _digest(info: ModelInfo) -> str:
    """Changes with the weights behind the name, and with what they are served with."""
    text = json.dumps([info.name, info.window, info.max_output, info.digest])
    return sha256_hex(text.encode())[:16]


def _prefix(actor: Actor, session_id: UUID | None) -> Prefix:
    """The ladder's own prefix, or the pinned system text and tools of a session with the ladder's tools behind them."""
    if session_id is None:
        return Prefix()
    session = session_of(actor, session_id)
    row: PlanRow = plan_row_of(session)
    plan = plan_from(log_of(session), row)
    tools = tuple(
        PromptTool(tool.wire_name or tool.name, tool.description, json.loads(tool.input_schema))
        for tool in plan.tools
        if tool.group == "defined" and tool.model_visible
    )
    texts = (plan.policy_text, plan.framing, plan.instructions, *plan.persona)
    return Prefix("\n\n".join(filter(None, texts)), tools).with_probe_tools()
