"""The cache panel of a request: the verdict in words."""

from __future__ import annotations

from ctxengine.engine.cache.causes import RULE_OF_CAUSE, Cause
from ctxengine.ledger.queries.request import CacheChange, RequestDetail
from inspector.figures import number
from inspector.request_contexts import CachePanel, ChangedBytes

_BASIS = {
    "measured": "Expected: what the provider itself measured at that entry, one report earlier.",
    "scaled": "Expected: our count, scaled to the size of the prompt that the provider reported.",
}
_STATES = {"agrees": "ok", "shortfall": "bad", "surplus": "warn"}
_RULES = {
    "profile": "Predicted by what was seen of this model's cache: its provider's documents state no rules."
}
_PARTS = {
    "model": "the model: what another one cached is of no use to it",
    "tools": "the tool definitions",
    "system": "the system part of the prefix",
    "prefix": "the prefix",
}
_UNHEARD = frozenset({"", "unreported"})
"""Outcomes of a request of which no read was heard, so that what was foreseen stands; the first one: not answered."""


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
        cause=cause_words(verdict.cause or _foreseen(request)),
        causeless=_causeless(request),
        reason=verdict.provider_reason,
        missed=verdict.provider_missed,
        disagreement=verdict.disagreement,
        basis=_BASIS.get(verdict.basis, ""),
        rules=_RULES.get(request.cache.by, ""),
        changed=_changed(request.cache.changed),
    )


def _changed(change: CacheChange | None) -> ChangedBytes | None:
    if change is None:
        return None
    moved = change.wire_prefix[0] != change.wire_prefix[1]
    digests = [("wire prefix", *change.wire_prefix)] if moved else []
    if change.fragment is None:
        return ChangedBytes(_PARTS.get(change.part, change.part), tuple(digests))
    digests.append(("up to its segment's end", *change.segment))
    return ChangedBytes(f"the messages, {_where(change.fragment, change.exact)}", tuple(digests))


def _where(same: int, exact: bool) -> str:
    """Where messages part, of which so many parts in front are the same; parts are counted from 0."""
    if exact:
        return f"from part {number(same)} on"
    return f"somewhere behind part {number(same - 1)}" if same else "which part is not known"


def _foreseen(request: RequestDetail) -> str:
    """The cause that was predicted, where the verdict names none: no read was heard of, or less was lost than foreseen."""
    still_lost = request.verdict.outcome == "surplus" and request.cache.lost
    return request.cache.cause if still_lost or request.verdict.outcome in _UNHEARD else ""


def _causeless(request: RequestDetail) -> str:
    """What stands instead of a cause: that nothing was lost is known of what was both predicted and reported alone."""
    if request.reconstructed or request.verdict.outcome in {"unpredicted", "unreported"}:
        return "not known"
    return RULE_OF_CAUSE[Cause.NONE].words if request.verdict.outcome else "none foreseen"


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
    if verdict.outcome == "unpredicted" and verdict.cause:
        return f"Not judged: {cause_words(verdict.cause)}."
    if verdict.outcome == "unreported" and request.usage.read == 0 and request.cache.by:
        return "The response says nought, as this model was seen to do whatever it reads."
    gap = abs((verdict.expected_read or 0) - (verdict.reported_read or 0))
    words = {
        "agrees": "The provider read what was predicted"
        + (": this loss was expected." if request.cache.lost else "."),
        "shortfall": f"{number(gap)} tokens less were read than predicted.",
        "surplus": f"{number(gap)} tokens more were read than predicted.",
        "unpredicted": "Nothing is predicted for this provider's cache.",
        "unreported": "The response reported no cache figures.",
    }
    return words.get(verdict.outcome, verdict.outcome)
