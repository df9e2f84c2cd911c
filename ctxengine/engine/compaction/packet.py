"""A summary of one exact range: what its event keeps, and how it stands in row 9 (spec, Compaction; design 7.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.compaction.deterministic import Sections, merged
from ctxengine.engine.compaction.elision import ElidedSpan
from ctxengine.engine.compaction.net_cost import NetCost
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.redaction.patterns import DETECTOR_VERSION
from ctxengine.engine.trust.envelope import nonce, render_envelope
from ctxengine.engine.trust.levels import Trust

MAX_DEPTH = 2
"""Items become a summary, summaries merge once (frozen-prefix spec, Summaries are bounded and monotone)."""

SUMMARY_TRUST = Trust.MODEL
"""Made from the user's and the model's words: the lower of the two (design 7.15)."""

PACKET_REASON = "working_set"
"""`reason` of the `context.compacted` events that hold the packets of a working set: a cache that a plan may use, no cut."""

FRAME_TOKENS = 110
"""Upper bound of what frame, envelope and end mark add to a summary's text (tokens)."""


class Added(BaseModel):
    """What a packet tells beyond the one that it grew from."""

    model_config = ConfigDict(frozen=True)

    source_event_ids: tuple[int, ...]
    elided: tuple[ElidedSpan, ...]
    sections: Sections


class CompactionResult(BaseModel):
    """What a compaction made, before anything is written."""

    model_config = ConfigDict(frozen=True)

    kind: str = "deterministic"
    summary: str
    first_sequence: int
    replaced_through_sequence: int
    source_event_ids: tuple[int, ...]
    elided: tuple[ElidedSpan, ...]
    constraints: tuple[str, ...] = ()
    """Constraints in force, word for word; a merge has the union of its parts'."""
    open_tasks: tuple[str, ...] = ()
    depth: Literal[1, 2] = 1
    merges: tuple[int, ...] = ()
    """Events of the summaries this one takes the place of."""
    turns: int
    units: int
    tokens_before: int
    tokens_after: int
    """What the summary costs in row 9, frame included."""
    compactor_version: str
    detector: str = DETECTOR_VERSION
    masked: int = 0
    source_sha256: str
    sections: Sections = Field(default_factory=Sections)
    """The summary's own material, so that a merge need not read prose."""
    prose_chars: int = 0
    """How much of the summary's beginning a model wrote (characters)."""
    prose_through: int = 0
    """Last event that this beginning tells of, where facts of later ones stand behind it; 0: it tells of the whole range."""
    verdict: NetCost | None = None
    grown_from: int = Field(default=0, exclude=True)
    """Event of the packet whose material this one took over; 0 where it took none."""
    added: Added | None = Field(default=None, exclude=True)
    """What is new beside that: only this is stored (`body_of`), so that bodies do not grow with the session's age."""


def body_of(result: CompactionResult) -> str:
    """What the event of a compaction keeps. The rest of a grown packet's material stands in the one that its event names."""
    if result.added is None:
        return result.model_dump_json()
    own = result.added
    return result.model_copy(
        update={
            "source_event_ids": own.source_event_ids,
            "elided": own.elided,
            "sections": own.sections,
        }
    ).model_dump_json()


def whole_of(parts: Sequence[CompactionResult]) -> CompactionResult:
    """A packet with all its material.

    Args:
        parts: what is stored of it and of those it grew from, the oldest first, itself last.
    """
    newest = parts[-1]
    if len(parts) == 1:
        return newest
    spans = {span.item_id: span for part in parts for span in part.elided}
    return newest.model_copy(
        update={
            "source_event_ids": tuple(sorted({i for part in parts for i in part.source_event_ids})),
            "elided": tuple(sorted(spans.values(), key=lambda span: span.item)),
            "sections": merged([part.sections for part in parts]),
        }
    )


class Packet(NamedTuple):
    """An installed summary as row 9 shows it."""

    sequence: EventSeq
    """Event that installed it; 0 while it is about to be written."""
    first: EventSeq
    through: EventSeq
    depth: int
    kind: str
    turns: int
    units: int
    text: str
    tokens: int
    tokens_before: int


class Gap(NamedTuple):
    """A range that was cut without a summary."""

    first: EventSeq
    through: EventSeq
    turns: int
    units: int
    tokens: int


Tile = Packet | Gap


def packet_of(result: CompactionResult, sequence: EventSeq = EventSeq(0)) -> Packet:
    """The packet that a result becomes once it is installed."""
    return Packet(
        sequence=sequence,
        first=EventSeq(result.first_sequence),
        through=EventSeq(result.replaced_through_sequence),
        depth=result.depth,
        kind=result.kind,
        turns=result.turns,
        units=result.units,
        text=result.summary,
        tokens=result.tokens_after,
        tokens_before=result.tokens_before,
    )


def packet_text(packet: Packet, nonce_key: bytes) -> str:
    """Row 9's text for one summary: a platform frame with an end mark, the summary in an envelope."""
    digest = sha256_hex(packet.text.encode("utf-8", "surrogatepass"))
    label = f"{packet.first}-{packet.through}"
    body = render_envelope(
        packet.text,
        source=f"summary:{packet.kind}",
        item_id=label,
        trust=SUMMARY_TRUST,
        nonce=nonce(nonce_key, f"summary:{label}", f"depth{packet.depth}", digest),
    )
    noun = "turn" if packet.turns == 1 else "turns"
    return (
        f"[summary] Events {packet.first} to {packet.through} ({packet.turns} {noun}, {packet.units} messages or steps) "
        "stand below in short. What was answered there is done; what is elided there can be recalled by its id.\n"
        f"{body}\n[end of summary]"
    )


def gap_text(gap: Gap) -> str:
    """Row 9's line for a range without a summary that does not start the session."""
    noun = "turn is" if gap.turns == 1 else "turns are"
    return (
        f"[omitted] {gap.turns} {noun} not shown ({gap.units} messages or steps, events {gap.first} to {gap.through}). "
        "Nothing is lost: ask for any of it by recalling its event number."
    )


def summary_row(tiles: Sequence[Tile], nonce_key: bytes, opening: str) -> str:
    """Row 9 where at least one summary stands.

    Args:
        opening: the fixed line for a gap that starts the session, as a cut without any summary has it.
    """
    lines = []
    for place, tile in enumerate(tiles):
        if isinstance(tile, Packet):
            lines.append(packet_text(tile, nonce_key))
        else:
            lines.append(opening if place == 0 else gap_text(tile))
    return "\n".join(lines)
