"""Digests of the fresh blocks that a request repeats, as they were rendered in it (design 4, 7.12).

The event of a block keeps the digest that it had when it was first sent. Another renderer gives it another one, and so does a
thread that an operator left something out of since. Where the text is erased later, the digest of this request stands in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ctxengine.engine.history.projection import SentBlock
from ctxengine.engine.request import RunInput
from ctxengine.engine.wire.base import WireMessage, WireRenderer, WireText


def digests_as_rendered(run: RunInput, renderer: WireRenderer) -> dict[str, str]:
    """The digest (64 hex digits) of each repeated block that this renderer gives another one than its event keeps, by event."""
    found = {
        str(block.sequence): _digest(block.text, renderer)
        for block in (*run.sent, *_kept(run))
        if block.text
    }
    kept = {str(block.sequence): block.digest for block in (*run.sent, *_kept(run))}
    return {event: digest for event, digest in found.items() if digest != kept[event]}


def with_digests(run: RunInput, digests: Mapping[str, str]) -> RunInput:
    """The run with these digests in place of those that the blocks' events keep."""
    if not digests:
        return run
    shown = run.projection
    if shown is not None and shown.blocks:
        shown = replace(shown, blocks=_under(shown.blocks, digests))
    return replace(run, sent=_under(run.sent, digests), projection=shown)


def _kept(run: RunInput) -> Sequence[SentBlock]:
    return run.projection.blocks if run.projection is not None else ()


def _under(blocks: Sequence[SentBlock], digests: Mapping[str, str]) -> tuple[SentBlock, ...]:
    return tuple(
        replace(block, digest=digests.get(str(block.sequence), block.digest)) for block in blocks
    )


def _digest(text: str, renderer: WireRenderer) -> str:
    fragments = renderer.fragments(WireMessage("user", (WireText(text),)))
    return hashlib.sha256(b"".join([fragment.data for fragment in fragments])).hexdigest()
