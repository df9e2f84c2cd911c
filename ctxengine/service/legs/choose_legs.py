"""Which further models a run's requests are built for; a change is an event and opens the next step (design 5 and 7.16).

The figures that size a request are read when the legs are chosen and hold for the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from django.db import transaction

from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.legs.build_leg import LegUnavailable, leg_plan, prefix_tokens
from ctxengine.engine.legs.leg import ONE, Leg, leg_frame
from ctxengine.engine.plan.plan import Plan, row_texts
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.access import still_open
from ctxengine.service.clock import utc_now
from ctxengine.service.factor import factor_in_force
from ctxengine.service.learnt_window import known_facts
from ctxengine.service.races import redo_once
from ctxengine.service.refusals import refusing
from ctxengine.service.specs import Actor, ModelRef
from ctxengine.service.warm import plan_of_session
from ctxengine.service.wiring import counter_of, log_of, renderer_of, session_facts
from ctxengine.service.working_set.ground import profile_in_force
from ctxengine.service.working_set.plan_run import ENGINE

HEADROOM = 1.03
"""How far below what a leg admits a request is aimed once the leg's own count was over it."""


def legs_of(run: RunRow) -> tuple[Leg, ...]:
    """The legs in force for a run, as its settings keep them."""
    return tuple(Leg.model_validate(leg) for leg in run.settings.get("legs", ()))


def choose_legs(
    *, actor: Actor, session: SessionRow, run: RunRow, wanted: Sequence[ModelRef] | None
) -> None:
    """Take other legs for the run's next requests; nothing where they are the ones in force, or none are named.

    Args:
        wanted: None leaves the legs as they are; an empty sequence ends them.

    Raises:
        ServiceError: `unsupported_provider`, `leg_unavailable` (422); `stale_head`, `run_ended` (409).
    """
    if wanted is None:
        return
    asked = [model.model_dump(mode="json") for model in wanted]
    if asked != run.settings.get("legs_asked", []):
        redo_once(lambda: _choose(actor, session, run, wanted, asked))


def _choose(
    actor: Actor,
    session: SessionRow,
    run: RunRow,
    wanted: Sequence[ModelRef],
    asked: list[dict[str, Any]],
) -> None:
    log = log_of(session)
    with refusing():
        head = log.head()
        still_open(run)
        waits = any(call.run == str(run.id) for call in log.open_calls())
        if waits or asked == run.settings.get("legs_asked", []):
            # Whoever assembles while results are missing is refused there.
            return
        plan = plan_of_session(session, log)
        legs = [_resolved(session, plan, model) for model in wanted]
        _write(actor, run, log, legs, "asked", expected=head.sequence, asked=asked)


def measured(
    *,
    actor: Actor,
    run: RunRow,
    log: PostgresLog,
    own_tokens: int,
    counts: Sequence[int],
    expected: EventSeq,
) -> None:
    """Keep that a leg's own counter found more in a request than the leg admits; the next one is sized with what was seen.

    Args:
        own_tokens: the request by the session's counter.
        counts: the same by each leg's.
    """
    legs = [
        leg.after(own_tokens - leg.own_prefix, math.ceil((tokens - leg.prefix) * HEADROOM))
        if tokens > leg.usable
        else leg
        for leg, tokens in zip(legs_of(run), counts, strict=True)
    ]
    _write(actor, run, log, legs, "measured", expected=expected, asked=run.settings["legs_asked"])


def _write(
    actor: Actor,
    run: RunRow,
    log: PostgresLog,
    legs: Sequence[Leg],
    reason: str,
    *,
    expected: EventSeq,
    asked: list[dict[str, Any]],
) -> None:
    figures = [leg.model_dump(mode="json") for leg in legs]
    draft = EventDraft(
        type=EventType.LEGS_CHOSEN,
        trust=Trust.PLATFORM,
        run=str(run.id),
        payload={"legs": figures, "reason": reason},
    )
    with transaction.atomic():
        log.append([draft], expected=expected, at=utc_now(), key=actor.idempotency_key)
        run.refresh_from_db(fields=["settings"])
        run.settings |= {"legs": figures, "legs_asked": asked}
        RunRow.objects.filter(tenant_id=run.tenant_id, id=run.id).update(settings=run.settings)


def _resolved(session: SessionRow, plan: Plan, model: ModelRef) -> Leg:
    """A leg with its figures.

    Raises:
        EngineError: nothing speaks to this provider; `LegUnavailable` where the plan cannot be sent to the model.
    """
    renderer = renderer_of(model.provider)
    known = known_facts(session.tenant_id, model.provider, model.name)
    window, most = model.window or known.window, model.max_output or known.max_output
    factor = factor_in_force(session.tenant_id, model.provider, model.name)
    admitted = leg_frame(window, most, plan.policy, factor / ONE)
    leg = Leg(
        provider=model.provider,
        model=model.name,
        window=window,
        max_output=most,
        reserve=admitted.reserve,
        factor_millionths=factor,
        usable=max(0, admitted.usable),
        prefix=plan.prefix_tokens,
        own_prefix=plan.prefix_tokens,
    )
    shown = leg_plan(plan, leg, renderer)
    counter = counter_of(model.provider, model.name)
    if counter.label != plan.counter:
        key = session_facts(session, plan).nonce_key
        leg = leg.model_copy(update={"prefix": prefix_tokens(plan, leg, counter, key)})
        # What the pinned texts take tells most of how the two count; tools cost each provider something of its own.
        texts = row_texts(plan, key).values()
        own = counter_of(plan.provider, plan.model)
        leg = leg.after(sum(map(own.text, texts)), sum(map(counter.text, texts)))
    if session.engine == ENGINE:
        profile, _ = profile_in_force(session, shown)
        leg = leg.model_copy(update={"horizon": profile.usable * ONE // factor})
    _refuse_too_small(plan, leg)
    return leg


def _refuse_too_small(plan: Plan, leg: Leg) -> None:
    """A leg that the prefix alone nearly fills would leave every request without history."""
    policy = plan.policy
    needed = plan.prefix_tokens + policy.history_floor + policy.recall_floor
    if policy.enforce_caps and leg.admits < needed:
        raise LegUnavailable(
            f"{leg.model} at {leg.provider} admits {leg.admits:,} tokens of this session's counting; the prefix and the floors "
            f"take {needed:,}. Name a larger model."
        )
