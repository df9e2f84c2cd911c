"""The one way in: plan, history, fresh rows, envelopes, wire, markers, validation, hashes (design 6).

`build()` is pure: called twice on equal values it gives equal bytes. Pressure is measured and resolved before it is called.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter, itemgetter

from ctxengine.engine.cache.markers import place_markers
from ctxengine.engine.canonical import canonical_bytes
from ctxengine.engine.errors import PrefixDrift, RunHasNoInput
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import Unit
from ctxengine.engine.manifest_writer import write_manifest
from ctxengine.engine.memo import BuildMemo, Region
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.request import CheckpointInput, ModelRequest, RunInput
from ctxengine.engine.rows import Behind, assemble
from ctxengine.engine.server_calls import serves, unsent_calls, without_calls
from ctxengine.engine.stretch import Stretch
from ctxengine.engine.validate import (
    check_budget,
    check_layout,
    check_pairs,
    check_wire,
    known_to_be_valid,
)
from ctxengine.engine.wire.base import Marker, WireParams, WireRenderer

REQUEST_HASH_VERSION = "request-hash@1"


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What may vary without changing the bytes the model reads."""

    validate: bool = True
    with_body: bool = True


def build(
    run: RunInput,
    checkpoint: CheckpointInput,
    plan: Plan,
    *,
    renderer: WireRenderer,
    memo: BuildMemo | None = None,
    options: BuildOptions = BuildOptions(),
) -> ModelRequest:
    """Build one request.

    Raises:
        PrefixDrift: the plan does not render to the hash it was pinned with.
        OrphanPair: a call or a result would stand alone.
        RunHasNoInput: there is nothing to answer.
        LayoutBreach: a row stands out of its order or its region.
        BudgetExceeded: the rows add up to more than is usable.
        WireInvalid: the body breaks a rule of the provider's API.
    """
    kept = memo if memo is not None else BuildMemo()
    region = kept.region(plan, run.nonce_key, renderer)
    prefix_sha = plan.wire_prefix_sha256 if plan.redacted else region.sha256
    if plan.wire_prefix_sha256 and prefix_sha != plan.wire_prefix_sha256:
        raise PrefixDrift(
            f"Epoch {plan.epoch} was pinned with prefix {plan.wire_prefix_sha256[:12]} and now renders to "
            f"{prefix_sha[:12]}; rotate the epoch to accept the new bytes."
        )
    if not run.history and not run.active:
        raise RunHasNoInput("The run holds no message yet; append one before assembling.")
    _check_pairs(run, kept)
    run, checkpoint = _answerable(run, checkpoint, kept, renderer.api.value)
    behind = assemble(run, checkpoint, plan, renderer, kept)
    check_layout(behind.stretches)
    if plan.redacted:
        behind.absent.add("erased")
    markers = place_markers(
        api=renderer.api,
        model=plan.model,
        has_tools=bool(region.prefix.tools),
        cards_fragments=behind.cards_end,
        history_fragments=behind.history_end,
        completed_fragments=behind.completed_end,
        prefix_ttl=plan.prefix_ttl,
        history_ttl=run.history_ttl,
    )
    window = plan.window if renderer.states_window else 0
    shown = run.projection
    params = WireParams(
        plan.model,
        run.fixed.reserve,
        run.session_key,
        window,
        betas=shown.betas if shown else (),
        compact_threshold=shown.compact_threshold if shown else 0,
    )
    fragments = tuple(behind.fragments)
    body = b""
    if options.with_body and not behind.absent:
        body = renderer.body(region.prefix, fragments, params, markers)
    if options.validate and not behind.absent:
        _validate(
            behind, kept if memo is not None else None, region, params, markers, renderer, body
        )
    manifest, budget = write_manifest(run, plan, behind.stretches, region)
    if options.validate:
        check_budget(budget)
    return ModelRequest(
        body=body,
        request_sha256=_request_hash(params, renderer, prefix_sha, behind.stretches),
        plan=plan,
        manifest=manifest,
        budget=budget,
        markers=markers,
        fragments=fragments,
        stretches=tuple(behind.stretches),
        opaque_units=tuple(behind.opaque_units),
        absent=tuple(sorted(behind.absent)),
        renderer=renderer,
        prefix=region.prefix,
        params=params,
        nonce_key=run.nonce_key,
        unsent=None if run.imported else tuple(sorted(run.unsent or ())),
        abandoned=run.abandoned,
    )


def remarked(request: ModelRequest, markers: Sequence[Marker]) -> ModelRequest:
    """The same request under other cache markers: no byte that the model reads and no hash changes.

    Raises:
        WireInvalid: the markers break the API's limit or its order of lives.
    """
    marks = tuple(markers)
    if marks == request.markers:
        return request
    body = request.body
    if body:
        body = request.renderer.body(request.prefix, request.fragments, request.params, marks)
    return replace(request, markers=marks, body=body)


def _check_pairs(run: RunInput, memo: BuildMemo) -> None:
    units = [*run.history, *run.active]
    check_pairs(memo.unpaired(units))
    memo.paired(units)


def _answerable(
    run: RunInput, checkpoint: CheckpointInput, memo: BuildMemo, api: str
) -> tuple[RunInput, CheckpointInput]:
    """The run without calls of the provider's own tools that the user did not wait for, and without results of no call."""
    shown = run.projection
    kept = [unit for _, units in (shown.kept if shown else ()) for unit in units]
    aside = [unit for unit in (*kept, *run.pinned) if serves(unit)]
    if run.imported or not (aside or memo.serving):
        return run, checkpoint
    here = [unit for unit in chain(run.history, run.active) if unit.sequence in memo.serving]
    served = memo.served([*here, *aside])
    unsent = run.unsent
    if unsent is None:
        unsent = unsent_calls(_in_order(run), served, lone_results=run.lone_results)
    mended = without_calls(here, served, unsent, api=api)
    apart = without_calls(aside, served, unsent, api=api)
    run = replace(run, unsent=unsent, abandoned=frozenset({*mended, *apart}))
    if not run.abandoned:
        return run, checkpoint
    if shown is not None:
        shown = replace(
            shown,
            history=_mended(shown.history, mended),
            promoted=_mended(shown.promoted, apart),
            kept=[(place, _mended(units, apart)) for place, units in shown.kept],
        )
    run = replace(
        run,
        history=_mended(run.history, mended),
        pinned=_mended(run.pinned, apart),
        active=_mended(run.active, mended),
        projection=shown,
    )
    through = max(run.abandoned)
    opaque = {at: blocks for at, blocks in checkpoint.opaque.items() if at > through}
    return run, replace(checkpoint, opaque=opaque)


def _mended(units: Sequence[Unit], mended: Mapping[EventSeq, Unit]) -> list[Unit]:
    return [mended.get(unit.sequence, unit) for unit in units]


def _in_order(run: RunInput) -> list[Unit | None]:
    """The run's units in the order in which they are sent; None where a platform line opens some that stand out of theirs."""
    found: list[Unit | None] = []
    begin = 0
    for place, units in sorted(run.projection.kept if run.projection else (), key=itemgetter(0)):
        end = bisect_left(run.history, place, key=attrgetter("sequence"))
        found += [*run.history[begin:end], *((None, *units) if units else ())]
        begin = end
    found += run.history[begin:]
    return [*found, *((None, *run.pinned) if run.pinned else ()), *run.active]


def _validate(
    behind: Behind,
    memo: BuildMemo | None,
    region: Region,
    params: WireParams,
    markers: tuple[Marker, ...],
    renderer: WireRenderer,
    body: bytes,
) -> None:
    """Hold the request against the provider's rules: what a memo does not vouch for, or the whole body."""
    if memo is not None and known_to_be_valid(behind, memo, region, params, markers, renderer):
        return
    whole = body or renderer.body(region.prefix, tuple(behind.fragments), params, markers)
    check_wire(renderer.api, whole)


def _request_hash(
    params: WireParams, renderer: WireRenderer, prefix_sha: str, stretches: Sequence[Stretch]
) -> str:
    window = {"window": params.window} if params.window else {}
    betas = {"betas": list(params.betas)} if params.betas else {}
    threshold = {"compacts": params.compact_threshold} if params.compact_threshold else {}
    skeleton = canonical_bytes(
        window
        | betas
        | threshold
        | {
            "hash": REQUEST_HASH_VERSION,
            "renderer": renderer.version,
            "model": params.model,
            "max_output_tokens": params.max_output_tokens,
            "session_key": params.session_key,
            "prefix": prefix_sha,
        }
    )
    digests = "".join(["".join(stretch.digests) for stretch in stretches])
    return hashlib.sha256(skeleton + digests.encode()).hexdigest()
