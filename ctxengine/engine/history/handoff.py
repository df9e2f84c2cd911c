"""A reset with handoff: what a session goes on from once everything before is set aside (capacity spec 4).

The rescue for a model with no usable horizon, and the one true boundary: turns behind it are neither planned nor listed, though
`recall` still reaches them.
"""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.compaction.packet import SUMMARY_TRUST
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.trust.envelope import nonce, render_envelope

ERASED_TEXT = "[erased]"


class Handoff(NamedTuple):
    """One reset, as row 9 shows it."""

    sequence: EventSeq
    turns: int
    """Turns behind it."""
    through: EventSeq
    """Last event behind it."""
    text: str
    tokens: int
    """What the text costs (tokens, raw count)."""
    erased: bool
    by: str
    """`runtime` for a text that was given, `ledger` for one taken from the session itself."""


def newest_handoff(log: SessionLog) -> Handoff | None:
    """The reset in force; None where there was none."""
    event = log.newest(EventType.SESSION_RESET)
    return None if event is None else _handoff(log, event)


def handoff_at(log: SessionLog, sequence: int) -> Handoff:
    """The reset that an event holds.

    Raises:
        LookupError: there is no reset at that place.
    """
    events = log.events(after=EventSeq(sequence - 1), limit=1)
    if not events or events[0].type is not EventType.SESSION_RESET:
        msg = f"Event {sequence} is no reset."
        raise LookupError(msg)
    return _handoff(log, events[0])


def handoff_text(handoff: Handoff, nonce_key: bytes) -> str:
    """Row 9's text for a handoff: a platform frame with an end mark, the text in an envelope."""
    digest = sha256_hex(handoff.text.encode("utf-8", "surrogatepass"))
    label = f"handoff:{handoff.sequence}"
    body = render_envelope(
        handoff.text,
        source="summary:handoff",
        item_id=label,
        trust=SUMMARY_TRUST,
        nonce=nonce(nonce_key, label, "whole", digest),
    )
    noun = "turn was" if handoff.turns == 1 else "turns were"
    return (
        f"[handoff] {handoff.turns} earlier {noun} set aside; what was handed over stands below. "
        f'Any of them is still kept: recall it by its number, for example turn "1".\n{body}\n[end of handoff]'
    )


def _handoff(log: SessionLog, event: EventRecord) -> Handoff:
    text = log.body(event.body.id) if event.body is not None else None
    told = event.payload
    return Handoff(
        sequence=event.sequence,
        turns=told["turns"],
        through=EventSeq(told["through"]),
        text=ERASED_TEXT if text is None else text,
        tokens=told["tokens"],
        erased=text is None,
        by=told["by"],
    )
