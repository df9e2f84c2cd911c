"""Row 12: the working state as one deterministic text, entries enveloped by their trust (frozen-prefix spec, per-entry trust).

The frame is the platform's; each entry was written by somebody below configuration trust and stands in its level's envelope.
"""

from __future__ import annotations

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.trust.envelope import nonce, render_envelope
from ctxengine.engine.trust.levels import Trust, needs_envelope
from ctxengine.engine.working_state.state import Fact, WorkingState

_FRAME = "[working state] As recorded up to event {through}; the latest block is valid."
_SAMPLE_KEY = b"0123456789abcdef"


def block_text(state: WorkingState, nonce_key: bytes = _SAMPLE_KEY, step: str = "0") -> str:
    """The row's text, empty for an empty state.

    Args:
        nonce_key: the session's key; the default serves for counting alone, where any key gives the same length.
        step: what tells this step's block apart, for its nonces.
    """
    groups = _lines_by_trust(state)
    if not groups:
        return ""
    pieces = [_FRAME.format(through=state.through)]
    for trust in Trust:
        lines = groups.get(trust)
        if not lines:
            continue
        body = "\n".join(lines)
        if not needs_envelope(trust):
            pieces.append(body)
            continue
        digest = sha256_hex(body.encode("utf-8", "surrogatepass"))
        pieces.append(
            render_envelope(
                body,
                source="working-state",
                item_id=f"state:{state.through}",
                trust=trust,
                nonce=nonce(nonce_key, f"state:{step}:{trust.value}", "whole", digest),
            )
        )
    return "\n".join(pieces)


def _lines_by_trust(state: WorkingState) -> dict[Trust, list[str]]:
    groups: dict[Trust, list[str]] = {}

    def put(trust: Trust, line: str) -> None:
        groups.setdefault(trust, []).append(line)

    if state.objective is not None:
        old = state.objective.supersedes
        note = f"; supersedes the one of event {old}" if old else ""
        put(
            state.objective.trust,
            f"objective (event {state.objective.sequence}{note}): {state.objective.text}",
        )
    for constraint in state.constraints:
        put(
            constraint.trust,
            f"constraint {constraint.id} (event {constraint.sequence}): {constraint.text}",
        )
    for task in state.tasks:
        put(task.trust, f"task {task.id} ({task.status.value}): {task.title}")
    for fact in state.facts:
        put(fact.trust, f"fact {fact.id} ({_sources(fact)}): {fact.statement}")
    for question in state.questions:
        put(
            question.trust,
            f"open question {question.id} (event {question.sequence}): {question.text}",
        )
    if state.next_action is not None:
        put(state.next_action.trust, f"next action: {state.next_action.text}")
    return groups


def _sources(fact: Fact) -> str:
    events = ", ".join(str(sequence) for sequence in fact.source_event_ids)
    where = f"event {events}" if events else f"event {fact.sequence}"
    return f"claim by {fact.origin}, {where}" if fact.is_claim else where
