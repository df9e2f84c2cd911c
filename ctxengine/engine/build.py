"""The one way in: plan, history, fresh rows, envelopes, wire, markers, validation, hashes (design 6).

`build()` is pure: called twice on equal values it gives equal bytes. Pressure is measured and resolved before it is called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ctxengine.engine.cache.markers import place_markers
from ctxengine.engine.canonical import canonical_bytes
from ctxengine.engine.errors import PrefixDrift, RunHasNoInput
from ctxengine.engine.fresh import OPENING_TEXT, memory_text, omission_text, runtime_text
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind, Opaque, Unit
from ctxengine.engine.manifest_writer import write_manifest
from ctxengine.engine.plan.plan import Plan, wire_prefix, wire_prefix_sha256
from ctxengine.engine.render import RenderContext, unit_messages
from ctxengine.engine.request import (
    CheckpointInput,
    ModelRequest,
    Rendered,
    RenderMemo,
    RunInput,
    Segment,
)
from ctxengine.engine.validate import check_pairs, check_wire
from ctxengine.engine.wire.base import Fragment, WireMessage, WireParams, WireRenderer, WireText

REQUEST_HASH_VERSION = "request-hash@1"


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What may vary without changing the bytes the model reads."""

    prefix_ttl: Literal["5m", "1h"] = "5m"
    validate: bool = True
    with_body: bool = True


@dataclass(slots=True)
class _Parts:
    """Fragments in wire order with the places markers and manifests refer to."""

    fragments: list[Fragment] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    unit_digests: dict[EventSeq, str] = field(default_factory=dict)
    unit_tokens: dict[EventSeq, int] = field(default_factory=dict)
    opaque_units: list[EventSeq] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)
    history_end: int = 0
    completed_end: int = 0


def build(
    run: RunInput,
    checkpoint: CheckpointInput,
    plan: Plan,
    *,
    renderer: WireRenderer,
    memo: RenderMemo | None = None,
    options: BuildOptions = BuildOptions(),
) -> ModelRequest:
    """Build one request.

    Raises:
        PrefixDrift: the plan does not render to the hash it was pinned with.
        OrphanPair: a call or a result would stand alone.
        RunHasNoInput: there is nothing to answer.
        WireInvalid: the body breaks a rule of the provider's API.
    """
    prefix_sha = wire_prefix_sha256(plan, run.nonce_key, renderer)
    if plan.wire_prefix_sha256 and prefix_sha != plan.wire_prefix_sha256:
        raise PrefixDrift(
            f"Epoch {plan.epoch} was pinned with prefix {plan.wire_prefix_sha256[:12]} and now renders to {prefix_sha[:12]}; "
            "rotate the epoch to accept the new bytes."
        )
    if not run.history and not run.active:
        raise RunHasNoInput("The run holds no message yet; append one before assembling.")
    check_pairs((*run.history, *run.active))
    parts = _assemble(run, checkpoint, plan, renderer, memo)
    markers = place_markers(
        api=renderer.api,
        model=plan.model,
        has_tools=bool(plan.defined),
        history_fragments=parts.history_end,
        completed_fragments=parts.completed_end,
        prefix_ttl=options.prefix_ttl,
    )
    params = WireParams(plan.model, run.fixed.reserve, run.session_key)
    prefix = wire_prefix(plan, run.nonce_key)
    body = b""
    if options.with_body and not parts.absent:
        body = renderer.body(prefix, tuple(parts.fragments), params, markers)
        if options.validate:
            check_wire(renderer.api, body)
    manifest, budget = write_manifest(run, plan)
    return ModelRequest(
        body=body,
        request_sha256=_request_hash(params, renderer, prefix_sha, parts.segments),
        plan=plan,
        manifest=manifest,
        budget=budget,
        markers=markers,
        fragments=tuple(parts.fragments),
        segments=tuple(parts.segments),
        unit_digests=parts.unit_digests,
        opaque_units=tuple(parts.opaque_units),
        absent=tuple(sorted(parts.absent)),
        renderer=renderer,
        prefix=prefix,
        params=params,
        unit_tokens=parts.unit_tokens,
        nonce_key=run.nonce_key,
    )


def _assemble(
    run: RunInput,
    checkpoint: CheckpointInput,
    plan: Plan,
    renderer: WireRenderer,
    memo: RenderMemo | None,
) -> _Parts:
    context = RenderContext(
        nonce_key=run.nonce_key,
        wire_names={tool.name: tool.wire_name for tool in plan.tools},
        api=renderer.api.value,
        foreign_as_pointer=run.imported,
    )
    parts = _Parts()
    _put(parts, renderer, 9, _row_nine(run))
    floor = run.allocation.floors.pointer
    for unit in run.history:
        _put_unit(parts, run, renderer, context, unit, unit.sequence < floor, (), memo)
    parts.history_end = len(parts.fragments)
    split = _trailing_input(run.active)
    for unit in run.active[:split]:
        opaque = tuple(checkpoint.opaque.get(unit.sequence, ()))
        pointers = unit.sequence < run.allocation.active_pointer
        _put_unit(parts, run, renderer, context, unit, pointers, opaque, None)
    parts.completed_end = len(parts.fragments)
    _put(parts, renderer, 14, _fresh(run))
    for unit in run.active[split:]:
        _put_unit(parts, run, renderer, context, unit, False, (), None, row=15)
    return parts


def _trailing_input(active: Sequence[Unit]) -> int:
    """Where the unanswered user input at the end of the run begins."""
    split = len(active)
    while split and active[split - 1].items[0].kind is ItemKind.USER_MESSAGE:
        split -= 1
    return split


def _row_nine(run: RunInput) -> str:
    if run.left_out.units:
        return omission_text(
            turns=run.left_out.turns, units=run.left_out.units, through=run.left_out.through
        )
    first = (run.history or run.active)[0].items[0]
    opens_with_user = first.kind in {ItemKind.USER_MESSAGE, ItemKind.SUMMARY}
    return "" if opens_with_user else OPENING_TEXT


def _fresh(run: RunInput) -> str:
    rows = [
        memory_text(run.memory.knowledge, kind="knowledge", nonce_key=run.nonce_key, step=run.step),
        memory_text(run.memory.recall, kind="recall", nonce_key=run.nonce_key, step=run.step),
        memory_text(
            run.memory.corrections, kind="correction", nonce_key=run.nonce_key, step=run.step
        ),
        runtime_text(run.runtime),
    ]
    return "\n".join(row for row in rows if row)


def _put(parts: _Parts, renderer: WireRenderer, row: int, text: str) -> None:
    if not text:
        return
    first = len(parts.fragments)
    digest = hashlib.sha256()
    for fragment in renderer.fragments(WireMessage("user", (WireText(text),))):
        parts.fragments.append(fragment)
        digest.update(fragment.data)
    parts.segments.append(
        Segment(row, None, "whole", digest.hexdigest(), first, len(parts.fragments))
    )


def _put_unit(
    parts: _Parts,
    run: RunInput,
    renderer: WireRenderer,
    context: RenderContext,
    unit: Unit,
    as_pointers: bool,
    opaque: tuple[Opaque, ...],
    memo: RenderMemo | None,
    row: int = 10,
) -> None:
    recorded = run.digests.get(unit.sequence)
    form = "pointer" if as_pointers else "whole"
    first = len(parts.fragments)
    parts.unit_tokens[unit.sequence] = unit.pointer_tokens if as_pointers else unit.tokens
    if recorded is not None and not opaque:
        parts.absent.add(recorded.why)
        parts.segments.append(Segment(row, unit.sequence, form, recorded.digest, first, first))
        parts.unit_digests[unit.sequence] = recorded.digest
        return
    rendered = memo.get(unit.sequence, form) if memo is not None else None
    if rendered is None:
        rendered = render_unit(unit, context, renderer, as_pointers=as_pointers, opaque=opaque)
        if memo is not None:
            memo.put(unit.sequence, form, rendered)
    parts.fragments.extend(rendered.fragments)
    parts.segments.append(
        Segment(row, unit.sequence, form, rendered.digest, first, len(parts.fragments))
    )
    parts.unit_digests[unit.sequence] = rendered.digest
    if opaque:
        parts.opaque_units.append(unit.sequence)


def render_unit(
    unit: Unit,
    context: RenderContext,
    renderer: WireRenderer,
    *,
    as_pointers: bool,
    opaque: tuple[Opaque, ...] = (),
) -> Rendered:
    """Render one unit to ready bytes with their digest."""
    fragments: list[Fragment] = []
    digest = hashlib.sha256()
    for message in unit_messages(unit, context, as_pointers=as_pointers, opaque=opaque):
        for fragment in renderer.fragments(message):
            fragments.append(fragment)
            digest.update(fragment.role.encode() + b"\x00" + fragment.data + b"\x00")
    return Rendered(tuple(fragments), digest.hexdigest())


def _request_hash(
    params: WireParams, renderer: WireRenderer, prefix_sha: str, segments: Sequence[Segment]
) -> str:
    skeleton = canonical_bytes(
        {
            "hash": REQUEST_HASH_VERSION,
            "renderer": renderer.version,
            "model": params.model,
            "max_output_tokens": params.max_output_tokens,
            "session_key": params.session_key,
            "prefix": prefix_sha,
        }
    )
    digest = hashlib.sha256(skeleton)
    digest.update("".join([segment.digest for segment in segments]).encode())
    return digest.hexdigest()
