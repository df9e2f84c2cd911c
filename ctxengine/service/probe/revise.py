"""The one way in which what was learnt changes a profile: the newest revision, read where nobody else writes (capacity spec 1).

A revision that was read earlier may no longer be in force: a copy of it would undo whatever was learnt meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.db import transaction

from ctxengine.engine.capacity.profile import CapacityProfile
from ctxengine.ledger.models import CapacityRow
from ctxengine.service.probe.profiles import hold_profile, keep_profile, newest_row

_SOURCE = "feedback"
Change = Callable[[CapacityProfile | None], CapacityProfile | None]
"""From the profile in force (None: nobody measured the model) to what it is now; None leaves all as it was."""


def revise_profile(
    *, tenant_id: UUID, provider: str, model: str, session_id: UUID, change: Change
) -> None:
    """Apply feedback to the profile in force.

    Inside a revision of feedback, unless the horizon moves; else in a new one: what a probe measured stays as it was, and
    each fall keeps the revision before it for the plans that rested on it.

    Args:
        session_id: whose requests taught it.
    """
    with transaction.atomic():
        hold_profile(tenant_id, provider, model)
        row = newest_row(tenant_id, provider, model)
        known = None if row is None else CapacityProfile.model_validate(row.profile)
        learnt = change(known)
        if learnt is None or learnt == known:
            return
        same_plan = known is not None and learnt.horizon == known.horizon
        if row is not None and row.source == _SOURCE and same_plan:
            CapacityRow.objects.filter(tenant_id=tenant_id, id=row.id).update(
                profile=learnt.model_dump(mode="json")
            )
            return
        keep_profile(tenant_id=tenant_id, profile=learnt, source=_SOURCE, session_id=session_id)
