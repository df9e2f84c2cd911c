"""What a run's receipts and guards teach the profile of its model; it holds from the next run on (capacity spec 1, Feedback).

Only the horizon is a plan's figure, and it only falls: each fall is a revision of its own, so that a recorded plan still names
what it rested on. Ratios move inside the newest revision of feedback.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from django.db import transaction

from ctxengine.engine.capacity.feedback import with_failed_instruction, with_receipt
from ctxengine.engine.capacity.profile import CapacityProfile, metadata_profile
from ctxengine.engine.events import EventType
from ctxengine.engine.guards.judgement import Guard
from ctxengine.ledger.models import CapacityRow, Event, RequestRow, RunRow, SessionRow
from ctxengine.service.clock import utc_now
from ctxengine.service.probe.profiles import keep_profile, newest_row
from ctxengine.service.wiring import facts_about

INSTRUCTION_GUARDS = frozenset(
    {Guard.EMPTY_STEP.value, Guard.FRESHNESS.value, Guard.TOPIC.value, Guard.STEERING.value}
)
"""Guards whose word means that an instruction was not followed; a repeated card means no such thing."""
ENGINES_WITH_PROFILES = frozenset({"working_set"})
"""Engines that a profile sizes; others teach nothing."""

_FAILED = frozenset({"repair", "closed"})


class _Lesson(NamedTuple):
    """One answered request, as far as it teaches."""

    provider: str
    model: str
    prompt_tokens: int
    """Billed, cache tiers included."""
    chars_sent: int
    cached_tokens: int
    first_token_ms: int | None
    failed: bool
    """Whether a guard said that its answer did not follow an instruction."""
    window: int
    """Of the plan it was built under."""


def learn_from_run(session: SessionRow, run: RunRow) -> None:
    """Let an ended run teach the profiles of the models that answered it. Call it outside the session's lock."""
    if session.engine not in ENGINES_WITH_PROFILES or session.import_sha256:
        return
    lessons = _lessons(session, run)
    for _, some in groupby(lessons, key=lambda lesson: (lesson.provider, lesson.model)):
        _teach(session, list(some))


def _lessons(session: SessionRow, run: RunRow) -> list[_Lesson]:
    rows = RequestRow.objects.filter(
        tenant_id=session.tenant_id, run_id=run.id, status="answered", reconstructed=False
    )
    requests = [
        row
        for row in rows.order_by("provider", "model", "number")
        if row.usage.get("prompt_total") and not row.usage.get("problems")
    ]
    if not requests:
        return []
    answers, failed = _answers(session, run)
    return [
        _Lesson(
            provider=row.provider,
            model=row.model,
            prompt_tokens=row.usage["prompt_total"],
            chars_sent=_sent(row)[0],
            cached_tokens=row.usage.get("cache_read") or 0,
            first_token_ms=answers.get(str(row.id)),
            failed=str(row.id) in failed,
            window=_sent(row)[1],
        )
        for row in requests
    ]


def _sent(row: RequestRow) -> tuple[int, int]:
    """Characters of the body that was answered, and the window it was built for; a leg's where a leg answered."""
    place = row.verdict.get("leg")
    if place is None:
        return row.body_chars, row.budget.get("window") or 0
    inputs = row.inputs
    return inputs["leg_bodies"][place]["body_chars"], inputs["legs"][place]["window"]


def _answers(session: SessionRow, run: RunRow) -> tuple[dict[str, int | None], set[str]]:
    """Time to the first token by request, and the requests whose answer a guard stopped."""
    kinds = (EventType.RESPONSE_COMPLETED.value, EventType.GUARD_JUDGED.value)
    events = Event.objects.filter(
        tenant_id=session.tenant_id, session_id=session.id, run_id=run.id, type__in=kinds
    ).values_list("sequence", "type", "payload")
    request_of: dict[int, str] = {}
    first: dict[str, int | None] = {}
    stopped: list[int] = []
    for sequence, kind, told in events:
        if kind == EventType.RESPONSE_COMPLETED.value:
            request_of[sequence] = told["request"]
            first[told["request"]] = told.get("first_token_ms")
        elif told["guard"] in INSTRUCTION_GUARDS and told["verdict"] in _FAILED:
            stopped.append(told["response"])
    return first, {request_of[sequence] for sequence in stopped if sequence in request_of}


def _teach(session: SessionRow, lessons: Sequence[_Lesson]) -> None:
    provider, model = lessons[0].provider, lessons[0].model
    with transaction.atomic():
        row = newest_row(session.tenant_id, provider, model)
        if row is not None:
            # Two runs that end at one moment both count.
            row = CapacityRow.objects.select_for_update().get(
                tenant_id=session.tenant_id, id=row.id
            )
        known = _known(provider, model, row, max(lesson.window for lesson in lessons))
        learnt = known
        for lesson in lessons:
            learnt = _after(learnt, lesson)
        if learnt == known:
            return
        if row is not None and row.source == "feedback" and learnt.horizon == known.horizon:
            CapacityRow.objects.filter(tenant_id=session.tenant_id, id=row.id).update(
                profile=learnt.model_dump(mode="json")
            )
            return
        keep_profile(
            tenant_id=session.tenant_id,
            profile=learnt,
            source="feedback",
            session_id=session.id,
        )


def _known(provider: str, model: str, row: CapacityRow | None, window: int) -> CapacityProfile:
    if row is not None:
        return CapacityProfile.model_validate(row.profile)
    facts = facts_about(provider, model)
    return metadata_profile(
        provider=provider,
        model=model,
        # A session may state a larger window than is known: nobody has measured that it is wrong.
        declared_window=max(facts.window, window),
        max_output=facts.max_output,
    )


def _after(profile: CapacityProfile, lesson: _Lesson) -> CapacityProfile:
    learnt = with_receipt(
        profile,
        prompt_tokens=lesson.prompt_tokens,
        chars_sent=lesson.chars_sent,
        first_token_ms=lesson.first_token_ms,
        cached_tokens=lesson.cached_tokens,
    )
    if lesson.failed:
        learnt = with_failed_instruction(
            learnt, request_tokens=lesson.prompt_tokens, at=utc_now().isoformat()
        )
    return learnt
