"""Inspect evaluation logs: one session for each sample; long texts stand apart and are referred to."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NamedTuple

from ctxengine.engine.importers.dialect import Facts, array_at, object_at, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.loose import add_said, read_message
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.texts import time_of
from ctxengine.engine.importers.transcript import (
    ForeignSession,
    ForeignTool,
    ForeignUsage,
    RepairAction,
    Transcript,
)
from ctxengine.engine.importers.usage import summed_usage
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

FORMAT = "inspect_ai_log"
_REFERENCE = re.compile(r"attachment://([0-9a-f]{32})")
_PUT_IN_AT_LEAST = 8 * 1024 * 1024
_PUT_IN_AT_MOST = 256 * 1024 * 1024
_PUT_IN_PER_CHAR = 8
"""Characters of texts that stand apart which may be put in where they are referred to: so many for each of the log, and
within these bounds."""


@dataclass(slots=True)
class _Apart:
    """Texts of a sample that stand apart, and how much of them may still be put in."""

    texts: dict[str, str]
    left: int
    """Characters, for the whole log."""
    unknown: int = 0
    """References to nothing that is there."""
    refused: int = 0
    """References beyond what may be put in."""


class _Call(NamedTuple):
    """One model event: facts of the answer it gave."""

    facts: Facts
    tools: list[Node]


def read_document(root: Node) -> Transcript:
    """Read a log.

    Raises:
        NotATranscript: the log was written without samples, so that there is no conversation in it.
    """
    samples = array_at(root, "samples")
    if not samples:
        raise NotATranscript(
            "it holds no samples (it was written with results only), so there is no conversation in it."
        )
    model = text_at(object_at(root, "eval"), "model")
    apart = _Apart(
        {}, min(max(len(root.raw) * _PUT_IN_PER_CHAR, _PUT_IN_AT_LEAST), _PUT_IN_AT_MOST)
    )
    sessions = [_sample(n, sample, model, apart) for n, sample in enumerate(samples, 1)]
    return Transcript(FORMAT, sessions)


def _sample(number: int, sample: Node, model: str | None, apart: _Apart) -> ForeignSession:
    name, epoch = first_given(sample, "id"), first_given(sample, "epoch")
    draft = SessionDraft(f"sample-{number}", "openai")
    draft.title = f"sample {name.raw if name else number}, epoch {epoch.raw if epoch else 1}"
    draft.model = model
    apart.texts = _attachments(sample)
    events = array_at(sample, "events") or array_at(
        object_at(sample, "transcript") or sample, "events"
    )
    calls = _model_calls(events)
    for call in calls.values():
        for tool in call.tools:
            draft.declare(_tool(tool))
    for place, message in enumerate(array_at(sample, "messages"), 1):
        where = f"sample {number} message {place}"
        known = calls.get(text_at(message, "id") or "")
        facts = known.facts if known is not None else Facts(model=text_at(message, "model"))
        apart.unknown = apart.refused = 0
        add_said(draft, read_message(_resolved(message, apart)), where, facts)
        _report(draft, apart, where)
    for place, event in enumerate(events, 1):
        kind = text_at(event, "event") or "unnamed"
        detail = f"Events of kind {kind}; the messages say what was said in them."
        draft.leave_many(f"event_{kind}", f"sample {number} event {place}", detail)
    return draft.finish()


def _model_calls(events: list[Node]) -> dict[str, _Call]:
    """Facts of model events, by the id of the message each gave."""
    calls: dict[str, _Call] = {}
    for event in events:
        output = object_at(event, "output")
        choices = array_at(output, "choices") if output is not None else []
        message_id = text_at(object_at(choices[0], "message"), "id") if choices else None
        if message_id is None:
            continue
        facts = Facts(
            model=text_at(output, "model"),
            usage=_usage(object_at(output, "usage")),
            stop_reason=text_at(choices[0], "stop_reason"),
            at=time_of(text_at(event, "timestamp")),
        )
        calls[message_id] = _Call(facts, array_at(event, "tools"))
    return calls


def _usage(node: Node | None) -> ForeignUsage | None:
    return summed_usage(
        node,
        prompt="input_tokens",
        cache_read=("input_tokens_cache_read",),
        cache_write=("input_tokens_cache_write",),
        output="output_tokens",
        total="total_tokens",
    )


def _attachments(sample: Node) -> dict[str, str]:
    """Texts that were moved out of messages and events, by their digest."""
    apart = object_at(sample, "attachments") or object_at(
        object_at(sample, "transcript"), "content"
    )
    if apart is None:
        return {}
    found = ((key, node.text()) for key, node in apart.items())
    return {key: text for key, text in found if text is not None}


def _resolved(message: Node, apart: _Apart) -> Node:
    """The message with its references replaced; itself when it refers to nothing that can be put in."""
    raw = message.raw
    if "attachment://" not in raw:
        return message

    def text_of(found: re.Match[str]) -> str:
        text = apart.texts.get(found[1])
        if text is None:
            apart.unknown += 1
            return found[0]
        written = json.dumps(text)[1:-1] if len(text) <= apart.left else ""
        if len(text) > apart.left or len(written) > apart.left:
            apart.refused += 1
            return found[0]
        apart.left -= len(written)
        return written

    try:
        return parse(_REFERENCE.sub(text_of, raw))
    except LexemeError:
        return message


def _report(draft: SessionDraft, apart: _Apart, where: str) -> None:
    """Tell of references that stay as they are."""
    if apart.unknown:
        detail = "References to texts that are not in the log; they stay as they are."
        draft.tally("missing_attachment", where, detail, action=RepairAction.WARNED)
    if apart.refused:
        detail = (
            "References to texts that are referred to too often to be put in everywhere; they stay as they are, the text "
            "stands where it was first referred to."
        )
        draft.tally("attachment_budget", where, detail, action=RepairAction.WARNED)


def _tool(node: Node) -> ForeignTool:
    schema = node.get("parameters")
    known = schema is not None and schema.kind is NodeKind.OBJECT
    return ForeignTool(
        name=text_at(node, "name") or "unnamed",
        description=text_at(node, "description") or "",
        input_schema=schema.raw if known and schema is not None else '{"type":"object"}',
    )
