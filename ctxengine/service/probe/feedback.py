"""What a run's receipts and failed instructions teach its model's profile, from the next run on (capacity spec 1, Feedback).

Only the horizon is a plan's figure, and it only falls: each fall is a revision of its own, so that a recorded plan still names
what it rested on. Ratios move inside the newest revision of feedback.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import groupby
from typing import NamedTuple

from ctxengine.engine.capacity.feedback import with_failed_instruction, with_receipt
from ctxengine.engine.capacity.profile import CapacityProfile, metadata_profile
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.service.clock import utc_now
from ctxengine.service.probe.failed_instructions import answers_of
from ctxengine.service.probe.revise import revise_profile
from ctxengine.service.wiring import facts_about

ENGINES_WITH_PROFILES = frozenset({"working_set"})
"""Engines that a profile sizes; others teach nothing."""


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
    """Whether its answer failed an instruction."""
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
    answers = answers_of(session, run)
    return [
        _Lesson(
            provider=row.provider,
            model=row.model,
            prompt_tokens=row.usage["prompt_total"],
            chars_sent=_sent(row)[0],
            cached_tokens=row.usage.get("cache_read") or 0,
            first_token_ms=answers.first_token_ms.get(str(row.id)),
            failed=str(row.id) in answers.failed,
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


def _teach(session: SessionRow, lessons: Sequence[_Lesson]) -> None:
    provider, model = lessons[0].provider, lessons[0].model

    def taught(standing: CapacityProfile | None) -> CapacityProfile | None:
        known = standing or _unmeasured(provider, model, max(one.window for one in lessons))
        learnt = reduce(_after, lessons, known)
        return None if learnt == known else learnt

    revise_profile(
        tenant_id=session.tenant_id,
        provider=provider,
        model=model,
        session_id=session.id,
        change=taught,
    )


def _unmeasured(provider: str, model: str, window: int) -> CapacityProfile:
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
