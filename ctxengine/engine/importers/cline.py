"""Cline and Roo Code histories: Anthropic messages in which the harness often speaks in the user's role."""

from __future__ import annotations

from ctxengine.engine.importers.anthropic_messages import add_anthropic_message, anthropic_turns
from ctxengine.engine.importers.dialect import (
    USER_VOICE,
    Facts,
    Voice,
    extra_of,
    object_at,
    plain_text,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.texts import shorten, time_of_epoch
from ctxengine.engine.importers.transcript import EntryType, ForeignUsage, Transcript
from ctxengine.engine.importers.usage import disjoint_usage
from ctxengine.engine.lexeme import Node
from ctxengine.engine.trust.levels import Trust

FORMAT = "cline_history"
_MODELLED = frozenset(("role", "content", "ts"))
_DIRECTIVES = ("<task>", "<feedback>", "<answer>", "<user_message>")
"""How texts begin that the user wrote; everything else in that role comes from tools and the environment."""


def read_document(root: Node) -> Transcript:
    """Read a history."""
    draft = SessionDraft("history", "anthropic")
    draft.title = _title(root)
    for number, (turn, message) in enumerate(zip(anthropic_turns(root), root, strict=True), 1):
        stamp = message.get("ts")
        at = time_of_epoch(stamp.value(), per_second=1_000) if stamp is not None else None
        facts = Facts(
            model=text_at(object_at(message, "modelInfo"), "modelId"),
            usage=_usage(object_at(object_at(message, "metrics"), "tokens")),
            at=at,
            extra=extra_of(message, _MODELLED),
        )
        classify = _voice if draft.size else _opening
        add_anthropic_message(draft, turn, f"message {number}", facts, classify=classify)
    return Transcript(FORMAT, [draft.finish()])


def _title(root: Node) -> str:
    """The first words of the task."""
    first = next((turn for turn in anthropic_turns(root) if turn.role == "user"), None)
    text = plain_text(first.value).partition("<task>")[2] if first is not None else ""
    lines = text.partition("</task>")[0].strip().splitlines()
    return shorten(lines[0]) if lines else ""


def _usage(tokens: Node | None) -> ForeignUsage | None:
    """Newer versions keep each answer's figures, with cached tokens beside the prompt."""
    return disjoint_usage(
        tokens, fresh="prompt", cache_read="cached", cache_write="cacheWrites", output="completion"
    )


def _opening(_: str) -> Voice:
    return USER_VOICE


def _voice(text: str) -> Voice:
    lines = text.splitlines()
    if any(line.lstrip().startswith(_DIRECTIVES) for line in lines):
        return USER_VOICE
    return EntryType.INPUT, Trust.EXTERNAL_UNTRUSTED
