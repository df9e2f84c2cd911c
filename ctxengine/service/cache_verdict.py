"""What a response tells about the cache: its figures held against the prediction, and what they teach (design 8)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ctxengine.engine.cache.causes import OF_BYTES, Cause
from ctxengine.engine.cache.predict import UNPREDICTED
from ctxengine.engine.cache.verdict import CacheVerdict, Expected, Reported, judge
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.tokens.usage import MAX_PLAUSIBLE_TOKENS, Usage
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import RequestRow

_REASON_FIELDS = ('"cache_miss_reason"', '"prompt_cache_diagnostics"')
_MOST_REASON_CHARS = 64
_UNANNOUNCED = frozenset({Cause.EPOCH, Cause.MODEL, Cause.IMAGES, Cause.REWRITTEN})
"""Causes whose loss no event of its own tells at the step; a run's end, a summary and an act by hand are such events."""
_NEAR_END = 4
"""Counting back holds where no more than this part of a request stands behind."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a response says beside its content."""

    response_raw: str
    response_model: str
    reasoned: bool
    """Whether it holds reasoning."""
    reasoned_before: Callable[[], bool | None]
    """Whether the session's answer before did; None where there is none. Asked only where it matters."""
    at: datetime


def verdict_on(request: RequestRow, usage: Usage | None, heard: Heard) -> CacheVerdict:
    """Judge the reported cache figures of a request."""
    reason, missed = provider_reason(heard.response_raw)
    predicted = request.cache.get("predicted")
    usable = usage is not None and usage.prompt_total > 0 and not usage.problems
    if usage is None or not usable or not usage.tells_reads:
        return CacheVerdict("unreported", provider_reason=reason, provider_missed=missed)
    reported = Reported(
        usage.cache_read,
        usage.cache_write_5m + usage.cache_write_1h if usage.tells_writes else None,
        usage.prompt_total,
        reason,
        missed,
    )
    if not predicted or predicted["why"] in UNPREDICTED:
        foreseen = Cause((predicted or {}).get("cause", ""))
        return _unpredicted(reported, foreseen)
    implicit = request.cache.get("implicit")
    if implicit and not implicit["tells"] and not reported.read:
        # It was measured to read much sooner the second time and to report nought then too.
        return CacheVerdict("unreported", provider_reason=reason, provider_missed=missed)
    expected = Expected(
        read=predicted["read"],
        write=predicted["write"],
        total=predicted["read"] + predicted["write"] + predicted["fresh"],
        why=predicted["why"],
        cause=Cause(predicted.get("cause", "")),
        measured=request.cache.get("measured"),
        step=request.cache.get("step", 1),
        behind=implicit["behind"] if implicit else 0,
        back=implicit["back"] if implicit else None,
    )
    found = judge(expected, reported)
    if implicit and found.outcome == "surplus" and expected.why == "first":
        # Other sessions may have left it: of what they did nothing was predicted.
        return _unpredicted(reported, expected.cause)
    if implicit and found.outcome == "shortfall" and _ran_late(request, heard):
        return _unpredicted(reported, Cause.LIFE_UNKNOWN)
    if found.cause is Cause.UNEXPLAINED:
        found = judge(expected, reported, _seen(request, heard))
    return found


def _unpredicted(reported: Reported, cause: Cause) -> CacheVerdict:
    return CacheVerdict(
        "unpredicted",
        reported_read=reported.read,
        reported_write=reported.write,
        cause=cause,
        provider_reason=reported.reason,
        provider_missed=reported.missed,
    )


def _ran_late(request: RequestRow, heard: Heard) -> bool:
    """Whether the entry's time was over before the answer came."""
    slack = request.cache.get("slack")
    return slack is not None and (heard.at - request.created_at).total_seconds() >= slack


def unjudged(usage: Usage | None) -> CacheVerdict:
    """The verdict on an answer to a body whose cache use nobody predicted."""
    if usage is None or usage.problems or not usage.tells_reads:
        return CacheVerdict("unreported")
    return CacheVerdict(
        "unpredicted",
        reported_read=usage.cache_read,
        reported_write=usage.cache_write_5m + usage.cache_write_1h if usage.tells_writes else None,
    )


def _seen(request: RequestRow, heard: Heard) -> Cause:
    """What happened since the request was built that explains a shortfall."""
    if _ran_late(request, heard):
        return Cause.EXPIRED_ON_THE_WAY
    if heard.response_model and not _same_model(request.model, heard.response_model):
        return Cause.MODEL
    before = heard.reasoned_before()
    if before is not None and before != heard.reasoned:
        return Cause.THINKING
    return Cause.UNEXPLAINED


def _same_model(asked: str, answered: str) -> bool:
    """Whether an answer's model is the one asked for, perhaps with a date behind it or a prefix in front."""
    wanted, given = (name.rsplit("/", 1)[-1].lower() for name in (asked, answered))
    return given.startswith(wanted) or wanted.startswith(given)


def provider_reason(response_raw: str) -> tuple[str, int | None]:
    """The provider's own reason for a miss and the tokens it cost, where the response has one."""
    if not any(name in response_raw for name in _REASON_FIELDS):
        return "", None
    try:
        data = json.loads(response_raw)
    except (ValueError, RecursionError):
        return "", None
    if not isinstance(data, dict):
        return "", None
    anthropic = _mapping(_mapping(data.get("diagnostics")).get("cache_miss_reason"))
    openai = _mapping(data.get("prompt_cache_diagnostics"))
    reason = anthropic.get("type") or openai.get("reason") or openai.get("type") or ""
    missed = anthropic.get("cache_missed_input_tokens", openai.get("cache_missed_tokens"))
    whole = isinstance(missed, int) and not isinstance(missed, bool)
    plausible = whole and 0 <= missed <= MAX_PLAUSIBLE_TOKENS
    # Kept in columns that hold neither U+0000 nor a lone surrogate: the model's view has neither.
    word = model_view(reason)[:_MOST_REASON_CHARS] if isinstance(reason, str) else ""
    return word, missed if plausible else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def verdict_json(verdict: CacheVerdict, *, reasoned: bool) -> dict[str, Any]:
    """A verdict as a request's row keeps it."""
    return {
        "class": verdict.outcome,
        "expected_read": verdict.expected_read,
        "reported_read": verdict.reported_read,
        "expected_write": verdict.expected_write,
        "reported_write": verdict.reported_write,
        "tolerance": verdict.tolerance,
        "basis": verdict.basis,
        "cause": verdict.cause.value,
        "provider_reason": verdict.provider_reason,
        "provider_missed": verdict.provider_missed,
        "disagreement": verdict.disagreement,
        "reasoned": reasoned,
    }


def shortfall_draft(request: RequestRow, verdict: CacheVerdict, run: str) -> EventDraft | None:
    """The event of a step that misses: beyond tolerance, or foreseen where a digest changed and no act in the log said so."""
    lost = (request.cache.get("predicted") or {}).get("lost", 0)
    foreseen = verdict.outcome == "agrees" and verdict.cause in _UNANNOUNCED and lost > 0
    if verdict.outcome != "shortfall" and not foreseen:
        return None
    return EventDraft(
        type=EventType.CACHE_SHORTFALL,
        trust=Trust.PLATFORM,
        run=run,
        payload={
            "request": str(request.id),
            "expected_read": verdict.expected_read,
            "reported_read": verdict.reported_read,
            "tolerance": verdict.tolerance,
            "basis": verdict.basis,
            "cause": verdict.cause.value,
            "provider_reason": verdict.provider_reason,
            "provider_missed": verdict.provider_missed,
            "disagreement": verdict.disagreement,
            "changed": request.cache.get("changed") if verdict.cause in OF_BYTES else None,
            "foreseen": foreseen,
            "lost": lost,
        },
    )


def withholds_reasoning(response_raw: str) -> bool:
    """Whether a response says that reasoning of its request did not reach the model."""
    if '"input_transformations"' not in response_raw:
        return False
    try:
        data = json.loads(response_raw)
    except (ValueError, RecursionError):
        return False
    changes = data.get("input_transformations") if isinstance(data, dict) else None
    return any(
        _mapping(change).get("type") == "reasoning" and _mapping(change).get("action") == "removed"
        for change in (changes if isinstance(changes, list) else ())
    )


def _without_reasoning(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A request's cache part when the provider read it without reasoning."""
    cache = dict(stored)
    bare = {
        entry["digest"]: entry["bare"] for entry in cache.get("entries", ()) if entry.get("bare")
    }
    deepest = cache.get("deepest")
    if deepest and deepest.get("bare"):
        bare[deepest["digest"]] = deepest["bare"]
        cache["deepest"] = deepest | {"digest": deepest["bare"]}
    cache["entries"] = [
        entry | {"digest": bare.get(entry["digest"], entry["digest"])}
        for entry in cache.get("entries", ())
    ]
    for name in ("reach", "at"):
        cache[name] = bare.get(cache.get(name, ""), cache.get(name, ""))
    return cache


def _drop_too_short(
    entries: dict[str, Any], deepest: Mapping[str, Any], reach: int, minimum: int
) -> None:
    """Take out what this request marked before its deepest marker and the provider, by its own count, cannot have kept."""
    counted = [entry for entry in entries.values() if (entry.get("measured") or 0) >= minimum]
    surely = min((entry["tokens"] for entry in counted), default=None)
    for digest, entry in list(entries.items()):
        if surely is not None and entry["tokens"] >= surely:
            # It lies behind a place that the provider itself counted over the minimum.
            continue
        made_now = entry["used_at"] == deepest["used_at"] and entry.get("measured") is None
        # Counted back from the measured end where little lies between, in proportion to it where much does: only what both
        # put below the minimum is surely too short.
        back = reach - (deepest["tokens"] - entry["tokens"])
        real = max(back, entry["tokens"] * reach // max(1, deepest["tokens"]))
        if made_now and digest != deepest["digest"] and real < minimum:
            del entries[digest]


def _in_use(behind: int, total: int, usage: Usage, at: datetime) -> dict[str, Any]:
    """What an answer says of an entry without a stated life, with so many raw counts of the request behind it.

    A template may leave parts of a prompt out, which makes every share of it wrong; what stands behind a late entry is little.
    """
    near = behind * _NEAR_END <= total
    return {
        "used_at": at.timestamp(),
        "back": max(0, usage.prompt_total - behind) if near else None,
    }


def measured_entries(
    request: RequestRow, usage: Usage, verdict: CacheVerdict, *, at: datetime, withheld: bool
) -> dict[str, Any]:
    """The request's cache part with the provider's own counts beside the entries they belong to.

    Args:
        at: when the answer came: a cache without a stated life is in use until then.
        withheld: the provider said that it read the request without some of its reasoning.
    """
    cache = _without_reasoning(request.cache) if withheld else dict(request.cache)
    predicted = cache.get("predicted")
    if not predicted:
        return cache
    if cache.get("step", 1) > 1:
        total = max(1, sum(predicted[part] for part in ("read", "write", "fresh")))
        implicit = "implicit" in cache
        cache["entries"] = [
            entry
            | {"measured": entry["tokens"] * usage.prompt_total // total}
            | (_in_use(total - entry["tokens"], total, usage, at) if implicit else {})
            for entry in cache.get("entries", ())
        ]
        return cache
    told: dict[str, int] = {}
    deepest = cache.get("deepest")
    entries = {entry["digest"]: entry for entry in cache.get("entries", ())}
    if cache.get("at") and verdict.outcome == "agrees" and usage.cache_read:
        told[cache["at"]] = usage.cache_read
    if deepest:
        # What was read and written ends at the deepest marker; where nothing was, its prefix is below the minimum.
        reach = usage.cache_read + usage.cache_write_5m + usage.cache_write_1h
        if reach:
            entries.setdefault(deepest["digest"], deepest)
            told[deepest["digest"]] = reach
            _drop_too_short(entries, deepest, reach, cache.get("minimum", 0))
        else:
            entries.pop(deepest["digest"], None)
    cache["entries"] = [
        entry | {"measured": told.get(digest, entry.get("measured"))}
        for digest, entry in entries.items()
    ]
    return cache
