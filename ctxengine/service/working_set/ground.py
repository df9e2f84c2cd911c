"""What a session's working set is planned on: the profile in force, the plan, the acts of operators (capacity spec 4)."""

from __future__ import annotations

from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.capacity.profile import CapacityProfile, Horizon, Provenance, metadata_profile
from ctxengine.engine.history.working_set_plan import Planning
from ctxengine.engine.history.working_set_record import ProfileUsed
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.run_input import fixed_frame
from ctxengine.engine.standing import Standing, history_acts, working_state_of
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import SessionRow
from ctxengine.service.compactors import compactor_of
from ctxengine.service.learnt_window import learnt_window
from ctxengine.service.probe.profiles import newest_row
from ctxengine.service.wiring import counter_of


def profile_in_force(session: SessionRow, plan: Plan) -> tuple[CapacityProfile, str | None]:
    """The profile that a run starts with, and its stored revision; from the plan's own window where none is stored.

    What the provider was seen to refuse counts, whoever learnt it.
    """
    row = newest_row(session.tenant_id, plan.provider, plan.model)
    if row is not None:
        profile = CapacityProfile.model_validate(row.profile)
    else:
        profile = metadata_profile(
            provider=plan.provider,
            model=plan.model,
            declared_window=plan.window,
            max_output=plan.max_output,
        )
    learnt = learnt_window(session.tenant_id, plan.provider, plan.model)
    if learnt is not None and (profile.verified_window or learnt) >= learnt:
        profile = profile.model_copy(update={"verified_window": learnt})
    return profile, str(row.id) if row is not None else None


def profile_again(used: ProfileUsed) -> CapacityProfile:
    """The profile that a plan recorded, for a replan inside its run (design 7.16)."""
    return CapacityProfile(
        provider=used.provider,
        model=used.model,
        declared_window=used.declared_window,
        verified_window=used.verified_window,
        horizon=Horizon(
            tokens=used.horizon, confidence=used.confidence_thousandths / 1000, native_calls=True
        ),
        provenance=Provenance.model_validate({"source": used.source}),
    )


def frame_of(plan: Plan, factor_millionths: int) -> Frame:
    """The plan's budget under a factor."""
    return fixed_frame(plan, factor_millionths)


def planning_of(
    log: PostgresLog,
    plan: Plan,
    profile: CapacityProfile,
    *,
    profile_id: str | None,
    factor_millionths: int,
    below: int,
) -> Planning:
    """Everything but the directive.

    Args:
        below: one past the newest content event.
    """
    acts = history_acts(log)
    state, _, _ = working_state_of(log)
    standing = Standing(state=state, marks=acts.marks, undone=acts.undone)
    compactor = compactor_of(log, plan, standing, below=below)
    return Planning(
        log=log,
        counter=counter_of(plan.provider, plan.model),
        policy=plan.policy,
        fixed=frame_of(plan, factor_millionths),
        profile=profile,
        profile_id=profile_id,
        skills=bool(plan.skills),
        marks=acts.marks,
        undone=acts.undone,
        surroundings=compactor.surroundings if compactor is not None else None,
    )
