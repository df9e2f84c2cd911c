"""Native compaction: the previous window and the newly covered suffix go in, a validated window comes out (providers.md 4).

Nothing here falls back to anything: what is wrong is a `CompactionError`, and an estimate admits no window.
"""

from __future__ import annotations

from typing import Any

from ctxengine.engine.boundary.checkpoint import Checkpoint, window_text
from ctxengine.engine.boundary.failures import CompactionError
from ctxengine.engine.boundary.note_text import archive_notice, note_text
from ctxengine.engine.boundary.recovery import View, narrowed, selected
from ctxengine.engine.boundary.work import Made, NativeAnswer, NativePort, Work, checkpoint_for
from ctxengine.engine.compaction.net_cost import is_progress
from ctxengine.engine.history.opening import opening_of
from ctxengine.engine.lexeme import LexemeError, parse
from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.rule import loads

_MOST_NARROWINGS = 6


def make_window(work: Work, port: NativePort, *, recovers: bool) -> Made:
    """Compact natively.

    Args:
        recovers: whether a history beyond the provider's allowance may be answered from a bounded view of it.

    Raises:
        CompactionError: nothing was made; the history and the checkpoint before it are as they were.
    """
    view, counts = _admitted(work, port, recovers)
    answer = port.compact(_input(work, view))
    items = checked(work.renderer.api, answer)
    notice = archive_notice(_point(work, view, 0))
    after = [*work.retained, *work.tail, *work.active]
    shown = work.fragments(after)
    opening = opening_of(after)
    beside = port.count(work.body((), (*work.spoken(opening), *shown)))
    whole = port.count(work.body(items, (*work.spoken(notice), *shown)))
    adds = whole - beside + _tokens(work, opening) - _tokens(work, notice)
    if not view.left_out and not is_progress(work.covered.tokens, max(1, adds)):
        raise CompactionError("not_reducing")
    if whole > work.available:
        raise CompactionError("recovery_oversized" if view.recovered else "not_reducing")
    # A provider that reads nothing in front of its own window counts less with it than without: no size of the window.
    estimate = min(whole, sum(_tokens(work, item) for item in items))
    return Made(
        _point(work, view, adds if adds > 0 else estimate),
        window_text(items),
        items=len(items),
        counted="counted" if adds > 0 else "estimated",
        calls=counts + 3,
    )


def checked(api: WireApi, answer: NativeAnswer) -> tuple[str, ...]:
    """The items of an answer, if they are what the provider's contract promises.

    Raises:
        CompactionError: `native_refused` where it made none, `invalid_native_output` for anything else.
    """
    if not answer.items:
        raise CompactionError("native_refused")
    if api is WireApi.ANTHROPIC:
        good = len(answer.items) == 1 and answer.stop == "compaction" and _signed(answer.items[0])
    else:
        kinds = [_object(item).get("type") for item in answer.items]
        good = (
            answer.stop == "response.compaction"
            and kinds.count("compaction") == 1
            and all(kind in {"message", "compaction"} for kind in kinds)
            and any(_sealed(item) for item in answer.items)
        )
    if not good:
        raise CompactionError("invalid_native_output")
    return answer.items


def _admitted(work: Work, port: NativePort, recovers: bool) -> tuple[View, int]:
    """What the provider is to read, known to fit by its own count; and how often it was asked for that."""
    view = View(tuple(work.covered.units))
    if recovers and work.expected_tokens(view.units) > work.allowance:
        view = selected(work)
    for counts in range(1, _MOST_NARROWINGS + 1):
        tokens = port.count(_input(work, view))
        if tokens <= work.allowance:
            return view, counts
        if not recovers:
            raise CompactionError(
                "native_input_oversized",
                detail=f"The history takes {tokens:,} tokens; the provider compacts {work.allowance:,} at once.",
            )
        view = narrowed(work, view if view.recovered else selected(work), over=tokens)
    raise CompactionError("recovery_oversized")


def _input(work: Work, view: View) -> bytes:
    """The body that the provider compacts: the window before, the notice of what is missing, the units."""
    overlays = work.covered.kept.overlays if not view.recovered else frozenset[int]()
    if not work.window and not work.note:
        # Conversations begin with the user: an overlay that opens this one is read, and follows the window all the same.
        overlays = overlays - {view.units[0].sequence}
    units = [unit for unit in view.units if unit.sequence not in overlays]
    elided = work.session.plan.policy.native_input == "elided"
    notice = archive_notice(_point(work, view, 0)) if view.recovered else ""
    base = work.covered.base
    # A note made for another provider is read as what it is, in front of what came after it.
    told = note_text(base, work.note, work.session.nonce_key) if base and work.note else ""
    shown = work.fragments(units, as_pointers=elided, over=True)
    if not work.window and not told:
        told = opening_of(units)
    fragments = (*work.spoken(told), *shown, *work.spoken(notice))
    return work.body(work.window, fragments, compacts=True)


def _tokens(work: Work, text: str) -> int:
    return work.counter.text(text) if text else 0


def _point(work: Work, view: View, tokens: int) -> Checkpoint:
    base = work.covered.base
    return checkpoint_for(
        work,
        kind="native",
        tokens=tokens,
        ranges=view.ranges,
        left_out=(*(base.left_out if base else ()), *view.left_out),
        recovered=view.recovered,
    )


def _object(item: str) -> dict[str, Any]:
    try:
        found = loads(item.encode("utf-8", "surrogatepass"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _signed(item: str) -> bool:
    block = _object(item)
    filled = all(
        isinstance(block.get(name), str) and block[name] for name in ("content", "signature")
    )
    return block.get("type") == "compaction" and filled and _whole(item)


def _sealed(item: str) -> bool:
    found = _object(item)
    sealed = found.get("encrypted_content")
    return found.get("type") == "compaction" and isinstance(sealed, str) and bool(sealed)


def _whole(item: str) -> bool:
    try:
        parse(item)
    except LexemeError:
        return False
    return True
