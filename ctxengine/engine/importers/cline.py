"""Cline and Roo Code histories: Anthropic messages in which the harness often speaks in the user's role."""

from __future__ import annotations

from ctxengine.engine.importers.anthropic_messages import add_anthropic_message, anthropic_turns
from ctxengine.engine.importers.dialect import USER_VOICE, Facts, Voice, extra_of
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.texts import time_of_epoch
from ctxengine.engine.importers.transcript import EntryType, Transcript
from ctxengine.engine.lexeme import Node
from ctxengine.engine.trust.levels import Trust

FORMAT = "cline_history"
_MODELLED = frozenset(("role", "content", "ts"))
_DIRECTIVES = ("<task>", "<feedback>", "<answer>", "<user_message>")
"""How texts begin that the user wrote; everything else in that role comes from tools and the environment."""


def read_document(root: Node) -> Transcript:
    """Read a history."""
    draft = SessionDraft("history", "anthropic")
    for number, (turn, message) in enumerate(zip(anthropic_turns(root), root, strict=True), 1):
        stamp = message.get("ts")
        at = time_of_epoch(stamp.value(), per_second=1_000) if stamp is not None else None
        facts = Facts(at=at, extra=extra_of(message, _MODELLED))
        classify = _voice if draft.size else _opening
        add_anthropic_message(draft, turn, f"message {number}", facts, classify=classify)
    return Transcript(FORMAT, [draft.finish()])


def _opening(_: str) -> Voice:
    return USER_VOICE


def _voice(text: str) -> Voice:
    lines = text.splitlines()
    if any(line.lstrip().startswith(_DIRECTIVES) for line in lines):
        return USER_VOICE
    return EntryType.INPUT, Trust.EXTERNAL_UNTRUSTED
