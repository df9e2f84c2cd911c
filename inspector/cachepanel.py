"""The cache panel of a request: the verdict in words."""

from __future__ import annotations

from ctxengine.engine.cache.causes import RULE_OF_CAUSE, Cause
from ctxengine.ledger.queries.request import RequestDetail
from inspector.figures import number
from inspector.request_contexts import CachePanel

_BASIS = {
    "measured": "Expected: what the provider itself measured at that entry, one report earlier.",
    "scaled": "Expected: our count, scaled to the size of the prompt that the provider reported.",
}
_STATES = {"agrees": "ok", "shortfall": "bad", "surplus": "warn"}


def cache_panel(request: RequestDetail) -> CachePanel:
    """What was predicted, what was reported, and why they differ."""
    verdict, predicted, usage = request.verdict, request.cache.predicted, request.usage
    return CachePanel(
        buckets=(
            ("read", predicted.read, verdict.expected_read, usage.read),
            ("written", predicted.write, verdict.expected_write, usage.write),
            ("fresh" if usage.read is not None else "input", predicted.fresh, None, usage.fresh),
        ),
        state=_STATES.get(verdict.outcome, ""),
        judged=_judged(request),
        cause=cause_words(verdict.cause or ("" if verdict.outcome else request.cache.cause)),
        reason=verdict.provider_reason,
        missed=verdict.provider_missed,
        disagreement=verdict.disagreement,
        basis=_BASIS.get(verdict.basis, ""),
    )


def cause_words(code: str) -> str:
    """A stored cause in words; a code of another version as it stands."""
    if not code:
        return ""
    known = {cause.value: cause for cause in Cause}
    return RULE_OF_CAUSE[known[code]].words if code in known else code


def _judged(request: RequestDetail) -> str:
    verdict = request.verdict
    if request.reconstructed:
        return "Reconstructed from an import: nothing was predicted, the figures are the original request's."
    if not verdict.outcome:
        return "Not answered yet."
    gap = abs((verdict.expected_read or 0) - (verdict.reported_read or 0))
    words = {
        "agrees": "The provider read what was predicted.",
        "shortfall": f"{number(gap)} tokens less were read than predicted.",
        "surplus": f"{number(gap)} tokens more were read than predicted.",
        "unpredicted": "Nothing is predicted for this provider's cache.",
        "unreported": "The response reported no cache figures.",
    }
    return words.get(verdict.outcome, verdict.outcome)
