"""Segment digests of units, kept when a unit is first rendered in a recorded request (design 4)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import transaction

from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.request import ModelRequest
from ctxengine.ledger.models import Rendering, SessionRow
from ctxengine.service.rebuild import rendered_under
from ctxengine.service.warm import Warmth

Key = tuple[str, int, str]
"""What it was rendered under, the unit, the form."""


def digests_of(built: ModelRequest, marks: Marks) -> dict[Key, str]:
    """Digests of the request's units but those that its own inputs keep: with reasoning, marked, or holding a noted call."""
    under = rendered_under(built.plan)
    own = {*built.opaque_units, *built.marked_digests(marks)}
    return {
        (under, unit.sequence, stretch.form): digest
        for stretch in built.stretches
        for unit, digest in zip(stretch.units, stretch.digests, strict=False)
        if unit.sequence not in own
    }


def rendering_rows(
    session: SessionRow, digests: dict[Key, str], known: Collection[Key] = ()
) -> list[Rendering]:
    """Rows for the digests that are not stored yet."""
    return [
        Rendering(
            tenant_id=session.tenant_id,
            session_id=session.id,
            unit_sequence=key[1],
            renderer=key[0],
            form=key[2],
            digest=digest,
        )
        for key, digest in digests.items()
        if key not in known
    ]


def new_renderings(
    session: SessionRow, requests: Sequence[ModelRequest], marks: Marks, warmth: Warmth
) -> list[Rendering]:
    """Digests of units that no recorded request held before, as far as this process knows.

    Args:
        requests: the session's own and those of its legs.
    """
    digests: dict[Key, str] = {}
    for built in requests:
        digests |= digests_of(built, marks)
    rows = rendering_rows(session, digests, warmth.digests)
    if rows:
        transaction.on_commit(lambda: warmth.remember(digests))
    return rows
