"""What receipts of a run say of its model's cache, whichever engine built its requests (capacity spec 1 and 11).

The cache rung asks once; a receipt that tells of a read is newer and was not staged. A profile is corrected by it and never
begun: a model that nobody measured and no working set was planned for has none.
"""

from __future__ import annotations

from ctxengine.engine.capacity.profile import CacheBehaviour, CapacityProfile
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.service.cache_behaviour import tells_read
from ctxengine.service.probe.profiles import cache_in_profile
from ctxengine.service.probe.revise import revise_profile


def learn_cache(session: SessionRow, run: RunRow) -> None:
    """Let an ended run teach the profiles of the models that answered it. Call it outside the session's lock."""
    if session.import_sha256:
        return
    rows = RequestRow.objects.filter(
        tenant_id=session.tenant_id, run_id=run.id, status="answered", reconstructed=False
    )
    answered = rows.order_by("provider", "model").values_list("provider", "model", "usage")
    read = {(provider, model): None for provider, model, usage in answered if tells_read(usage)}
    for provider, model in read:
        behaviour, revision = cache_in_profile(session.tenant_id, provider, model)
        if revision is not None and behaviour is not CacheBehaviour.REPORTED:
            revise_profile(
                tenant_id=session.tenant_id,
                provider=provider,
                model=model,
                session_id=session.id,
                change=_reported,
            )


def _reported(known: CapacityProfile | None) -> CapacityProfile | None:
    if known is None:
        return None
    return known.model_copy(update={"cache": CacheBehaviour.REPORTED})
