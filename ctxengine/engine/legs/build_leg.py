"""One step's projection as another model's request: the same units at the same forms under that provider's renderer (design 5).

Nothing is decided here. What only the session's own provider understands stays with it: reasoning, betas, native windows.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace

from ctxengine.engine.build import BuildOptions, build
from ctxengine.engine.cache.bound_reasoning import binds_reasoning
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.derive import Derivation, recounted
from ctxengine.engine.errors import EngineError
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import StepInputs
from ctxengine.engine.items import Opaque, Unit
from ctxengine.engine.legs.leg import Leg, LegBody
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.plan.planner import measure_classes
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.request import CheckpointInput, ModelRequest, RunInput
from ctxengine.engine.sent_digests import digests_as_rendered
from ctxengine.engine.wire.base import WireRenderer
from ctxengine.engine.wire.tool_search import RESERVED_NAMES, defers_natively

CountedUnits = MutableMapping[tuple[EventSeq, str], tuple[Unit, int]]
"""What units take by a leg's counter, by place and form; may be dropped at any moment."""


class LegUnavailable(EngineError):
    """This model cannot be sent what the session holds."""

    code = "leg_unavailable"


def leg_plan(plan: Plan, leg: Leg, renderer: WireRenderer, *, wire_prefix_sha256: str = "") -> Plan:
    """Region A as the leg is sent it: the pinned texts and tools, nothing resolved anew.

    Args:
        wire_prefix_sha256: the recorded hash, for a body that is built again.

    Raises:
        LegUnavailable: the plan leaves finding tools to a search that this provider lacks.
    """
    if plan.deferral == "native":
        taken = RESERVED_NAMES.get(renderer.api, frozenset())
        if not defers_natively(leg.provider, leg.model) or any(
            tool.wire_name in taken for tool in plan.tools
        ):
            raise LegUnavailable(
                f"The plan defers tools natively, and {leg.model} at {leg.provider} has no such search. Leave the leg out, or "
                "set `deferral` to `index`."
            )
    return plan.model_copy(
        update={
            "provider": leg.provider,
            "model": leg.model,
            "window": leg.window,
            "max_output": leg.max_output,
            "renderer": renderer.version,
            "wire_prefix_sha256": wire_prefix_sha256,
        }
    )


def leg_run(run: RunInput, plan: Plan, leg: Leg) -> RunInput:
    """What `build()` reads for a leg.

    Args:
        plan: the session's own.

    Raises:
        LegUnavailable: history stands behind a window that only the session's own model can read.
    """
    shown = run.projection
    if shown is not None and not same_model(plan, leg):
        if shown.native:
            raise LegUnavailable(
                f"History stands behind a window of {plan.model} at {plan.provider}, which {leg.model} at {leg.provider} "
                "cannot read. Undo that compaction, or leave the leg out."
            )
        shown = replace(shown, betas=(), compact_threshold=0)
    return replace(run, fixed=replace(run.fixed, reserve=leg.reserve), projection=shown)


def same_model(plan: Plan, leg: Leg) -> bool:
    """Whether the leg is the session's own model once more."""
    return (plan.provider, plan.model) == (leg.provider, leg.model)


def own_reasoning(
    opaque: Mapping[EventSeq, Sequence[Opaque]],
) -> Mapping[EventSeq, Sequence[Opaque]]:
    """The run's reasoning without what a leg has thought."""
    return _thought_by(opaque, "", "")


def leg_reasoning(
    opaque: Mapping[EventSeq, Sequence[Opaque]], plan: Plan, leg: Leg
) -> Mapping[EventSeq, Sequence[Opaque]]:
    """What of the run's reasoning a leg may be sent: its own, and none where the model binds it to the bytes before it."""
    if binds_reasoning(leg.model):
        return {}
    mine = _thought_by(opaque, leg.provider, leg.model)
    return {**mine, **own_reasoning(opaque)} if same_model(plan, leg) else mine


def _thought_by(
    opaque: Mapping[EventSeq, Sequence[Opaque]], provider: str, model: str
) -> Mapping[EventSeq, Sequence[Opaque]]:
    """Blocks of one thinker; those of the session's own model carry no name."""
    if all(
        (block.provider, block.model) == (provider, model)
        for blocks in opaque.values()
        for block in blocks
    ):
        return opaque
    found = {
        sequence: tuple(b for b in blocks if (b.provider, b.model) == (provider, model))
        for sequence, blocks in opaque.items()
    }
    return {sequence: blocks for sequence, blocks in found.items() if blocks}


def build_leg(
    run: RunInput,
    plan: Plan,
    leg: Leg,
    opaque: Mapping[EventSeq, Sequence[Opaque]],
    *,
    renderer: WireRenderer,
    memo: BuildMemo | None = None,
    options: BuildOptions = BuildOptions(),
    wire_prefix_sha256: str = "",
) -> ModelRequest:
    """The leg's request from the run as its own model sees it.

    Args:
        plan: the session's own.
        opaque: the run's reasoning; what the leg may see of it is chosen here.

    Raises:
        LegUnavailable: as `leg_plan` and `leg_run` say.
        EngineError: as `build` does.
    """
    return build(
        leg_run(run, plan, leg),
        CheckpointInput(leg_reasoning(opaque, plan, leg)),
        leg_plan(plan, leg, renderer, wire_prefix_sha256=wire_prefix_sha256),
        renderer=renderer,
        memo=memo,
        options=options,
    )


def as_leg_recorded(inputs: StepInputs, body: LegBody) -> StepInputs:
    """Recorded inputs with the digests that hold under the leg's renderer."""
    return inputs.model_copy(
        update={
            "opaque": body.opaque,
            "marked": body.marked,
            "fresh": body.fresh,
            "summary": body.summary,
            "sent_digests": body.sent,
        }
    )


def leg_body(
    built: ModelRequest,
    run: RunInput,
    marks: Marks,
    renderer: WireRenderer,
    *,
    tokens: int,
    prefix_sha256: str,
) -> LegBody:
    """What is to be recorded of a leg's request."""
    blocks = [stretch for stretch in built.stretches if not stretch.units]
    return LegBody(
        request_sha256=built.request_sha256,
        wire_prefix_sha256=prefix_sha256,
        tokens=tokens,
        body_bytes=len(built.body),
        body_chars=len(built.body.decode("utf-8", "surrogatepass")),
        opaque={str(unit): built.unit_digests[unit] for unit in built.opaque_units},
        marked={str(unit): digest for unit, digest in built.marked_digests(marks).items()},
        fresh=next((s.digests[0] for s in blocks if s.row == 14), ""),
        summary="".join(stretch.digests[0] for stretch in blocks if stretch.row == 9),
        sent=digests_as_rendered(run, renderer),
    )


# --- what it takes by the leg's own counter ---------------------------------------------------------------------------


def prefix_tokens(plan: Plan, leg: Leg, counter: TokenCounter, nonce_key: bytes) -> int:
    """Region A by the leg's counter (tokens)."""
    tools = tuple(
        tool.model_copy(
            update={"tokens": counter.tool(tool.wire_name, tool.description, tool.input_schema)}
        )
        for tool in plan.tools
    )
    shown = plan.model_copy(update={"tools": tools, "provider": leg.provider, "model": leg.model})
    classes = measure_classes(shown, counter=counter, nonce_key=nonce_key)
    return sum(entry.tokens for entry in classes.values())


def body_tokens(built: ModelRequest, derivation: Derivation, known: CountedUnits) -> int:
    """Everything behind the prefix by the leg's counter (tokens).

    Args:
        known: counts of earlier steps, taken where the unit is still the same; brought up to date.
    """
    used: dict[tuple[EventSeq, str], tuple[Unit, int]] = {}
    total = 0
    for stretch in built.stretches:
        for fragment in () if stretch.units else stretch.fragments:
            total += derivation.counter.text(fragment.data.decode("utf-8", "replace"))
        for unit in stretch.units:
            key = (unit.sequence, stretch.form)
            kept = known.get(key)
            if kept is None or (kept[0] is not unit and kept[0] != unit):
                kept = (unit, _unit_tokens(unit, stretch.form, derivation))
            used[key] = kept
            total += kept[1]
    known.clear()
    known.update(used)
    return total


def _unit_tokens(unit: Unit, form: str, derivation: Derivation) -> int:
    counts = [recounted(item, derivation) for item in unit.items]
    return sum(count.pointer_tokens if form == "pointer" else count.tokens for count in counts)
