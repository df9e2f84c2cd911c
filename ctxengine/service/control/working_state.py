"""`context.update_working_state`: typed transitions, and never prose (frozen-prefix spec, Working state)."""

from __future__ import annotations

import json

from ctxengine.engine.errors import EngineError
from ctxengine.engine.working_state.resolve import resolve_model_wish
from ctxengine.engine.working_state.transitions import Transition
from ctxengine.engine.working_state.wishes import read_wish
from ctxengine.service.control.answers import ControlAnswer, ControlCall
from ctxengine.service.working_state import StateWriter, desk_of


def answer_update(call: ControlCall) -> ControlAnswer:
    """Grant a wish as a whole or not at all. The answer quotes nothing the model wrote."""
    run = str(call.run.id)
    writer = StateWriter(
        call.log,
        call.session,
        run,
        any_act=True,
        pending=call.pending,
        first=call.response_sequence,
    )
    desk = desk_of(
        call.session, call.log, call.plan, run=run, below=call.response_sequence, now=call.now
    )
    try:
        transition = resolve_model_wish(writer.state, read_wish(call.arguments), desk)
    except EngineError as error:
        return ControlAnswer(
            json.dumps({"error": error.code, "detail": error.message, **error.numbers}),
            is_error=True,
        )
    if not transition.changed:
        return ControlAnswer(json.dumps({"ok": True, "changed": {}}))
    # The result of the call comes first, then the event.
    draft = writer.draft(transition, call.response_sequence + len(call.pending) + 1)
    return ControlAnswer(json.dumps(_told(transition)), drafts=[draft])


def _told(transition: Transition) -> dict[str, object]:
    ids = {
        name: [entry.id for entry in entries]
        for name, entries in (("constraints", transition.constraints), ("facts", transition.facts))
        if entries
    }
    numbered = [
        task.id for task in transition.tasks if task.id.startswith("t") and task.id[1:].isdigit()
    ]
    if numbered:
        ids["tasks"] = numbered
    claims = sum(fact.is_claim for fact in transition.facts)
    told: dict[str, object] = {"ok": True, "changed": transition.changed, "ids": ids}
    if claims:
        told["kept_as_claims"] = claims
    if transition.evicted:
        told["evicted"] = len(transition.evicted)
    return told
