"""The one way out: a session's log as the text of another format, and what that format had no place for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ctxengine.engine.exporters.anthropic_messages import anthropic_messages
from ctxengine.engine.exporters.left_out import LeftOut, Losses
from ctxengine.engine.exporters.openai_chat import openai_chat
from ctxengine.engine.exporters.otel_genai import otel_genai
from ctxengine.engine.exporters.sheet import Mask
from ctxengine.engine.exporters.source import SessionFacts
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.ports import SessionLog

_Exporter = Callable[[SessionLog, SessionFacts, Mask | None, Losses], Iterator[str]]

_EXPORTERS: dict[str, _Exporter] = {
    "openai_chat": openai_chat,
    "anthropic_messages": anthropic_messages,
    "otel_genai": otel_genai,
}

FORMATS = tuple(_EXPORTERS)
"""Names of all formats that can be written."""


class Export(NamedTuple):
    """A session in another format."""

    text: str
    """One JSON document; it encodes to UTF-8 strictly."""
    left_out: tuple[LeftOut, ...]


def export(
    log: SessionLog, facts: SessionFacts, format: str, *, mask: Mask | None = None
) -> Export:
    """Write a session in one of `FORMATS`.

    Contents are those that were received, without envelopes; reasoning is in no log and in no export.

    Args:
        log: The session's log.
        facts: What is said about the session as a whole.
        format: The format's name.
        mask: Takes the secrets out of a text; None writes them.

    Raises:
        KeyError: there is no such format.
    """
    losses = Losses()
    _note_prefix(facts, losses)
    text = "".join(_EXPORTERS[format](log, facts, mask, losses))
    return Export(text, losses.lines())


def own_format(formats: Iterable[ContentFormat]) -> str:
    """The format that holds most of a session, by the forms its contents were received in."""
    found = set(formats)
    if ContentFormat.ANTHROPIC in found:
        return "anthropic_messages"
    if ContentFormat.OPENAI_CHAT in found:
        return "openai_chat"
    return "otel_genai"


def _note_prefix(facts: SessionFacts, losses: Losses) -> None:
    if facts.plan.skills:
        losses.note("skills", items=len(facts.plan.skills))
    if facts.plan.snapshot:
        losses.note("snapshot", items=len(facts.plan.snapshot))
