"""A run's checkpoint: opaque reasoning, encrypted, kept for the run's life and no longer (design 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Opaque
from ctxengine.ledger.ahead import Read
from ctxengine.ledger.models import Checkpoint, RunRow
from ctxengine.ledger.rows import asks_row_by, row_by
from ctxengine.service.crypto import decrypt, encrypt


def asks_opaque(run: RunRow) -> Read:
    """What `opaque_of` asks, to be read ahead."""
    return asks_row_by(Checkpoint, tenant_id=run.tenant_id, run_id=run.id)


def opaque_of(run: RunRow) -> dict[EventSeq, tuple[Opaque, ...]]:
    """The run's reasoning blocks by the sequence of the response they came in; empty without a checkpoint."""
    row = row_by(Checkpoint, tenant_id=run.tenant_id, run_id=run.id)
    if row is None or row.opaque is None:
        return {}
    data = json.loads(decrypt(bytes(row.opaque)))
    return {
        EventSeq(int(sequence)): tuple(Opaque(**block) for block in blocks)
        for sequence, blocks in data.items()
    }


def keep_opaque(run: RunRow, sequence: EventSeq, blocks: Sequence[Opaque], *, at: datetime) -> None:
    """Add a response's reasoning to the run's checkpoint."""
    known: dict[EventSeq, Sequence[Opaque]] = dict(opaque_of(run))
    if blocks:
        known[sequence] = blocks
    save_opaque(run.tenant_id, run.session_id, run.id, sequence, known, at=at)


def save_opaque(
    tenant_id: UUID,
    session_id: UUID,
    run_id: UUID,
    head: EventSeq,
    blocks: Mapping[EventSeq, Sequence[Opaque]],
    *,
    at: datetime,
) -> None:
    """Write a run's checkpoint."""
    text = json.dumps(
        {str(sequence): [asdict(block) for block in found] for sequence, found in blocks.items()}
    )
    row, made = Checkpoint.objects.get_or_create(
        tenant_id=tenant_id,
        run_id=run_id,
        defaults={
            "session_id": session_id,
            "head_sequence": head,
            "revision": 1,
            "opaque": encrypt(text.encode()),
            "updated_at": at,
        },
    )
    if not made:
        Checkpoint.objects.filter(tenant_id=tenant_id, run_id=run_id).update(
            revision=row.revision + 1,
            head_sequence=head,
            opaque=encrypt(text.encode()),
            updated_at=at,
        )


def drop_checkpoint(run: RunRow) -> int:
    """Forget the run's reasoning; returns how many blocks went."""
    count = sum(len(blocks) for blocks in opaque_of(run).values())
    Checkpoint.objects.filter(tenant_id=run.tenant_id, run_id=run.id).delete()
    return count
