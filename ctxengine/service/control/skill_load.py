"""`skill.load`: a skill's body joins the session for good, or the load fails (spec, Skill bodies)."""

from __future__ import annotations

import json

from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.events import EventType
from ctxengine.engine.lexeme import parse
from ctxengine.service.control.answers import ControlAnswer, ControlCall
from ctxengine.service.skills import load_draft, loads

LOADED = "Loaded. The skill's text stands at the end of the conversation from the next request on."
ALREADY = "This skill is loaded already; its text stands at the end of the conversation."


def answer_skill_load(call: ControlCall) -> ControlAnswer:
    """Answer one load. A body is never traded for another: what does not fit is refused, and nothing changes."""
    named = parse(call.arguments).get("name")
    name = (named.text() if named is not None else None) or ""
    skill = next((entry for entry in call.plan.skills if entry.name == name), None)
    if skill is None:
        return _refused("unknown_skill", "No skill of the catalog has that name.")
    before = [(event.payload["name"], event.payload["tokens"]) for event in loads(call.log)]
    before += [
        (draft.payload["name"], draft.payload["tokens"])
        for draft in call.pending
        if draft.type is EventType.SKILL_LOADED
    ]
    if any(known == skill.name for known, _ in before):
        return ControlAnswer(ALREADY)
    cap = call.plan.policy.cap(BudgetClass.SKILL_BODIES)
    if cap.items is not None and len(before) >= cap.items:
        return _refused(
            "skill_limit",
            "As many skills are loaded as a session may hold; none can be unloaded.",
            loaded=len(before),
            limit=cap.items,
        )
    taken = sum(tokens for _, tokens in before)
    if cap.tokens is not None and taken + skill.body_tokens > cap.tokens:
        return _refused(
            "skill_too_large",
            "The skill's text does not fit beside what is loaded; none can be unloaded.",
            needed_tokens=skill.body_tokens,
            left_tokens=cap.tokens - taken,
        )
    draft = load_draft(call.log, skill, str(call.run.id), principal=call.session.principal)
    if draft is None:
        return _refused("skill_gone", "The skill's text was erased.")
    return ControlAnswer(LOADED, drafts=[draft])


def _refused(code: str, detail: str, **figures: int) -> ControlAnswer:
    return ControlAnswer(json.dumps({"error": code, "detail": detail, **figures}), is_error=True)
