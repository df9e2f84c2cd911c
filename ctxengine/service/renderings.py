"""Segment digests of units, kept when a unit is first rendered in a recorded request (design 4)."""

from __future__ import annotations

from collections.abc import Collection

from ctxengine.engine.request import ModelRequest
from ctxengine.ledger.models import Rendering, SessionRow
from ctxengine.service.rebuild import rendered_under

Key = tuple[str, int, str]
"""What it was rendered under, the unit, the form."""


def digests_of(built: ModelRequest) -> dict[Key, str]:
    """Digests of the request's units; those with reasoning are in the request's own inputs."""
    under = rendered_under(built.plan)
    with_reasoning = set(built.opaque_units)
    return {
        (under, unit.sequence, stretch.form): digest
        for stretch in built.stretches
        for unit, digest in zip(stretch.units, stretch.digests, strict=False)
        if unit.sequence not in with_reasoning
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
