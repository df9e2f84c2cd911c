"""What was seen of a model's cache, pinned when a run starts (design 7.16; capacity spec 1 and 11).

A provider's documents are hints. Where they say nothing, the model's profile and the session's own receipts do; a run keeps
what was read at its start, so that nothing learnt meanwhile changes what its requests were predicted by.
"""

from __future__ import annotations

from typing import Any

from ctxengine.engine.cache.rules import CacheRules, cache_rules, rules_in_force
from ctxengine.engine.capacity.profile import CacheBehaviour
from ctxengine.engine.plan.plan import Plan
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.service.probe.profiles import cache_in_profile
from ctxengine.service.wiring import renderer_of

_LATEST = 20
"""Requests of the session whose receipts are looked at, the newest first."""
_PINNED = "cache"


def pinned_behaviour(session: SessionRow, provider: str, model: str) -> dict[str, Any]:
    """What a new run's settings keep of its model's cache; empty where the provider's own rules decide alone.

    Reads that the session itself was told of say more than a profile: whoever probed may have gone another way.
    """
    if cache_rules(renderer_of(provider).api, provider, model).kind == "markers":
        return {}
    behaviour, revision = cache_in_profile(session.tenant_id, provider, model)
    source = "profile" if revision is not None else ""
    reported = CacheBehaviour.REPORTED
    if behaviour is not reported and _read_before(session, provider, model):
        behaviour, source, revision = reported, "usage", None
    pinned = {"provider": provider, "model": model, "behaviour": behaviour.value}
    return {_PINNED: pinned | {"source": source, "profile": str(revision) if revision else None}}


def rules_of_run(run: RunRow, plan: Plan) -> CacheRules:
    """The cache rules that a run's requests are predicted by."""
    pinned = run.settings.get(_PINNED, {})
    same = (pinned.get("provider"), pinned.get("model")) == (plan.provider, plan.model)
    seen = CacheBehaviour(pinned["behaviour"]) if same else CacheBehaviour.UNKNOWN
    return rules_in_force(renderer_of(plan.provider).api, plan.provider, plan.model, seen)


def _read_before(session: SessionRow, provider: str, model: str) -> bool:
    """Whether a receipt of the session's latest requests tells of a read, by figures that can be right."""
    rows = RequestRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
    latest = rows.order_by("-number").values_list("provider", "model", "reconstructed", "usage")
    return any(
        (row_provider, row_model) == (provider, model) and not reconstructed and tells_read(usage)
        for row_provider, row_model, reconstructed, usage in latest[:_LATEST]
    )


def tells_read(usage: dict[str, Any]) -> bool:
    """Whether stored usage tells of a cache read, by figures that can be right."""
    return bool(usage.get("cache_read")) and not usage.get("problems")
