"""Checkpoints: what a `context.compacted` event of this engine says, and whether it still holds (boundary spec, Persistence).

A native window is bound to provider, model, system and tools; a portable note to its source alone. Both are bound to the
operator's acts on what they cover: another act there makes another source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ctxengine.engine.canonical import digest_of
from ctxengine.engine.compaction.acts import BOUNDARY_KINDS, Marks
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.ports import SessionLog

Kind = Literal["native", "note"]
Ranges = tuple[tuple[int, int], ...]
"""First and last event of each range."""
Operations = tuple[tuple[str, int], ...]
"""Each operation that is alive, and the sequence that opens the unit it was last told in."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One durable checkpoint."""

    sequence: EventSeq
    """Event that installed it; 0 while it is about to be."""
    kind: Kind
    cut: EventSeq
    """Units from here on stand whole behind it."""
    source: str
    """Digest of what it covers, the checkpoint before it included."""
    contract: str
    """Digest of provider, model, system and tools; empty for a note."""
    marks: str
    """Digest of the operator's acts on what it covers."""
    tokens: int
    """What it takes in row 9 (tokens): counted by the provider for a window, by us for a note."""
    tokens_before: int
    turns: int
    units: int
    retained: tuple[int, ...] = ()
    """Units it covers that are shown again behind it for good, by the sequence that opens them."""
    operations: Operations = ()
    """Those that are shown again while their operation is alive."""
    recovered: bool = False
    """Whether it was made from a bounded view of the archive."""
    ranges: Ranges = ()
    """What that view held."""
    left_out: Ranges = ()
    """What it did not hold: neither shown nor summarised."""
    inline: bool = False
    """Whether the provider made the window by itself, in the answer that opens what follows."""
    base: int = 0
    """The checkpoint it rests on; 0: the history itself."""
    body: str | None = None
    """Body with the sealed window, or the note."""
    gaps: tuple[str, ...] = ()
    """Parts that a note must have and has not, by name."""

    @property
    def replaced(self) -> int:
        """Last sequence it stands for."""
        return self.cut - 1

    @property
    def shown(self) -> tuple[int, ...]:
        """Units it covers that are shown again behind it, an operator's pins aside: these may come and go."""
        return tuple(sorted({*self.retained, *(unit for _, unit in self.operations)}))


def checkpoint_of(event: EventRecord) -> Checkpoint:
    """Read one from its event."""
    payload = event.payload
    return Checkpoint(
        sequence=event.sequence,
        kind=payload["kind"],
        cut=EventSeq(payload["cut"]),
        source=payload["source_sha256"],
        contract=payload["contract_sha256"],
        marks=payload["marks_sha256"],
        tokens=payload["tokens_after"],
        tokens_before=payload["tokens_before"],
        turns=payload["turns"],
        units=payload["units"],
        retained=tuple(payload["retained"]),
        operations=_operations(payload.get("operations", ())),
        recovered=payload["recovered"],
        ranges=_ranges(payload["ranges"]),
        left_out=_ranges(payload["left_out"]),
        inline=payload["inline"],
        base=payload["base"] or 0,
        body=event.body.id if event.body else None,
        gaps=tuple(payload.get("gaps", ())),
    )


def _ranges(stored: Iterable[Sequence[int]]) -> Ranges:
    return tuple((first, last) for first, last in stored)


def _operations(stored: Iterable[Sequence[Any]]) -> Operations:
    return tuple((str(operation), int(unit)) for operation, unit in stored)


def contract_of(plan: Plan) -> str:
    """What a native window of this plan is bound to: provider, model, and system and tools as sent."""
    return digest_of(
        {
            "provider": plan.provider,
            "model": plan.model,
            "renderer": plan.renderer,
            "prefix": plan.wire_prefix_sha256,
        }
    )


def marks_below(marks: Marks, cut: int) -> str:
    """Digest of the operator's acts on units before `cut`; empty where there are none."""
    folded = [sequence for sequence in marks.folded if sequence < cut]
    excluded = [item for item in marks.excluded if int(item.partition(".")[0]) < cut]
    return digest_of({"folded": folded, "excluded": excluded}) if folded or excluded else ""


def made_checkpoints(log: SessionLog) -> tuple[Checkpoint, ...]:
    """Those that nobody has undone, newest first."""
    undone = {event.payload["compaction"] for event in log.latest({EventType.COMPACTION_UNDONE})}
    return tuple(
        checkpoint_of(event)
        for event in log.latest({EventType.COMPACTED})
        if event.payload["kind"] in BOUNDARY_KINDS and event.sequence not in undone
    )


def holds(
    checkpoint: Checkpoint, log: SessionLog, *, contract: str, marks: Marks, below: int
) -> bool:
    """Whether a checkpoint may stand in a request now.

    Args:
        contract: of the present plan.
        below: where the open run begins.
    """
    return (
        checkpoint.cut <= below
        and (checkpoint.kind == "note" or checkpoint.contract == contract)
        and checkpoint.marks == marks_below(marks, checkpoint.cut)
        and checkpoint.body is not None
        and log.body(checkpoint.body) is not None
    )


def in_force(log: SessionLog, *, contract: str, marks: Marks, below: int) -> Checkpoint | None:
    """The newest checkpoint that holds; None where the whole history stands."""
    return next(
        (
            checkpoint
            for checkpoint in made_checkpoints(log)
            if holds(checkpoint, log, contract=contract, marks=marks, below=below)
        ),
        None,
    )


def window_text(items: Sequence[str]) -> str:
    """A native window as it is sealed: the raw text of each of its items, in order."""
    return json.dumps({"items": list(items)}, ensure_ascii=True)


def window_items(text: str) -> tuple[str, ...]:
    """The items of an opened window.

    Raises:
        ValueError: the text is no window.
    """
    held: Any = json.loads(text)
    return tuple(str(item) for item in held["items"])
