"""What one compaction reads and what it makes: plain values between the log and whoever asks a provider (boundary spec)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ctxengine.engine.boundary.capability import betas_for, instructions_stand_aside
from ctxengine.engine.boundary.checkpoint import Checkpoint, Ranges, contract_of
from ctxengine.engine.boundary.settled import Covered
from ctxengine.engine.canonical import digest_of
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import SessionFacts
from ctxengine.engine.items import Unit
from ctxengine.engine.plan.plan import wire_prefix
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.render import RenderContext
from ctxengine.engine.rows import render_unit
from ctxengine.engine.server_calls import serves, without_abandoned
from ctxengine.engine.wire.base import (
    Fragment,
    WireMessage,
    WireParams,
    WirePrefix,
    WireRenderer,
    WireText,
)
from ctxengine.engine.wire.encoding import quoted, utf8
from ctxengine.engine.wire.native_window import window_fragments


class NativeAnswer(NamedTuple):
    """What a provider gave back for a compaction."""

    items: tuple[str, ...]
    """Raw JSON text of each item, in order."""
    stop: str
    """The provider's word for how it ended."""


class NativePort(Protocol):
    """A provider that compacts and counts. Everything it raises is a `CompactionError`.

    `missing_configuration` bars no further try: it is for a call that could not be sent, never for one that was.
    """

    def count(self, body: bytes) -> int:
        """Exact input tokens of a body; `count_unavailable` where there is no such count."""
        ...

    def compact(self, body: bytes) -> NativeAnswer:
        """Have what the body holds replaced by a window."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """One compaction to be made, read at one head."""

    session: SessionFacts
    counter: TokenCounter
    renderer: WireRenderer
    covered: Covered
    tail: Sequence[Unit]
    """Carried units that stay whole behind the cut."""
    active: Sequence[Unit]
    """Units of the open run: never covered, reserved first."""
    retained: Sequence[Unit]
    """Units of the covered part that follow the result."""
    window: tuple[str, ...] = field(default=(), repr=False)
    """Items of the base, where it is a native window."""
    note: str = field(default="", repr=False)
    """Text of the base, where it is a note."""
    excluded: tuple[str, ...] = ()
    """Items that an operator left out: no writer reads them."""
    usable: int = 0
    """Tokens that a whole request may take, by our own count."""
    available: int = 0
    """Tokens that it may take by the provider's count: what is left beside the answer."""
    factor: float = 1.0
    """What one token of our count is expected to be billed as."""

    @property
    def prefix(self) -> str:
        """Digest of source, contract and figures: what a failure is remembered by.

        A mended policy or another window makes another prefix, so that what failed under the old one is tried again.
        """
        plan = self.session.plan
        figures = [plan.window, plan.max_output, plan.policy.as_json()]
        return digest_of([self.covered.source, contract_of(plan), figures])

    @property
    def allowance(self) -> int:
        """Tokens that a provider's compaction may read."""
        policy, window = self.session.plan.policy, self.session.plan.window
        return max(0, window - policy.native_compaction_max_output_tokens)

    @property
    def inline(self) -> bool:
        """Whether the base is a window that the provider made by itself."""
        return bool(self.covered.base and self.covered.base.inline)

    @property
    def prefix_tokens(self) -> int:
        """Tokens of region A, by our own count."""
        return self.session.plan.prefix_tokens

    def expected_tokens(self, units: Sequence[Unit]) -> int:
        """What a provider would read of these units, as we expect it to count (tokens)."""
        base = self.covered.base.tokens if self.covered.base else 0
        return int((self.prefix_tokens + base + sum(u.tokens for u in units)) * self.factor)

    @property
    def wire(self) -> WirePrefix:
        """Region A as sent."""
        return wire_prefix(self.session.plan, self.session.nonce_key)

    def fragments(
        self, units: Sequence[Unit], *, as_pointers: bool = False, over: bool = False
    ) -> tuple[Fragment, ...]:
        """Units as they stand on the wire.

        Args:
            over: whether the user has spoken behind them all.
        """
        plan = self.session.plan
        serving = [unit.sequence for unit in units if serves(unit)]
        api = self.renderer.api.value
        mended = without_abandoned(units, serving, api=api, over=over) if serving else {}
        context = RenderContext(
            nonce_key=self.session.nonce_key,
            wire_names={tool.name: tool.wire_name for tool in plan.tools},
            api=self.renderer.api.value,
            foreign_as_pointer=self.session.imported,
            inline=plan.policy.inline,
            searchable=plan.searchable,
        )
        return tuple(
            fragment
            for unit in units
            for fragment in render_unit(
                mended.get(unit.sequence, unit), context, self.renderer, as_pointers=as_pointers
            ).fragments
        )

    def spoken(self, text: str) -> tuple[Fragment, ...]:
        """A platform text in the user's role."""
        return self.renderer.fragments(WireMessage("user", (WireText(text),))) if text else ()

    def body(
        self, items: Sequence[str], fragments: Sequence[Fragment], *, compacts: bool = False
    ) -> bytes:
        """A request body of the selected model, with its tools and its present instructions.

        Args:
            items: a native window in front.
            compacts: the body goes to the compaction; some providers want the instructions beside it, since what they
                make of it is to be followed by them again.
        """
        plan, wire = self.session.plan, self.wire
        aside = compacts and instructions_stand_aside(self.renderer.api)
        window = bool(items)
        params = WireParams(
            plan.model,
            plan.policy.native_compaction_max_output_tokens,
            self.session.session_key,
            betas=betas_for(
                self.renderer.api,
                window=compacts or (window and not self.inline),
                inline=window and self.inline,
            ),
        )
        sent = WirePrefix((), wire.tools, wire.deferred) if aside else wire
        whole = (*window_fragments(self.renderer.api, items), *fragments)
        body = self.renderer.body(sent, whole, params)
        if aside and wire.system:
            said = quoted("\n\n".join(wire.system))
            body = utf8(f'{{"instructions":{said},', "The instructions") + body[1:]
        return body


@dataclass(frozen=True, slots=True)
class Made:
    """A checkpoint ready to be installed, if what it was made from still holds."""

    checkpoint: Checkpoint
    text: str = field(repr=False)
    """The window's items, or the note, before anything is sealed."""
    items: int
    counted: str
    """`counted` by the provider, or `estimated` by us."""
    calls: int
    """Calls that it took."""
    writer: Mapping[str, str] | None = None
    """Who wrote a note: `model`, how it was `chosen`, and by which `prompt`; None where nobody said."""


def checkpoint_for(
    work: Work,
    *,
    kind: str,
    tokens: int,
    ranges: Ranges = (),
    left_out: Ranges = (),
    recovered: bool = False,
) -> Checkpoint:
    """The checkpoint of a compaction, before its event is written."""
    covered, base = work.covered, work.covered.base
    before = (base.tokens_before if base else 0) + sum(unit.tokens for unit in covered.units)
    return Checkpoint(
        sequence=EventSeq(0),
        kind="native" if kind == "native" else "note",
        cut=covered.cut,
        source=covered.source,
        contract=contract_of(work.session.plan) if kind == "native" else "",
        marks=covered.marks,
        tokens=tokens,
        tokens_before=before,
        turns=covered.turns,
        units=len(covered.units) + (base.units if base else 0),
        retained=covered.kept.retained,
        operations=covered.kept.operations,
        recovered=recovered,
        ranges=ranges,
        left_out=left_out,
        base=int(base.sequence) if base else 0,
    )


def payload_of(
    made: Made, *, plan_total: int, model: str, policy: str, forced_by: str, base: Checkpoint | None
) -> dict[str, object]:
    """The payload of the event that installs it."""
    point = made.checkpoint
    return {
        "kind": point.kind,
        "first_sequence": 1,
        "replaced_through_sequence": point.replaced,
        "depth": 1,
        "merges": [],
        "came_with": [],
        "turns": point.turns,
        "units": point.units,
        "sources": point.units,
        "elided": 0,
        "constraints": 0,
        "tokens_before": point.tokens_before,
        "tokens_after": point.tokens,
        "compactor": f"boundary-{point.kind}@1",
        "detector": "",
        "masked": 0,
        "source_sha256": point.source,
        "plan_total": plan_total,
        "model": model,
        "policy": policy,
        "forced_by": forced_by,
        "reason": "boundary",
        "verdict": None,
        "cut": point.cut,
        "base": base.sequence if base else None,
        "contract_sha256": point.contract,
        "marks_sha256": point.marks,
        "window_sha256": digest_of(made.text),
        "inline": point.inline,
        "items": made.items,
        "retained": list(point.retained),
        "operations": [list(entry) for entry in point.operations],
        "recovered": point.recovered,
        "ranges": [list(entry) for entry in point.ranges],
        "left_out": [list(entry) for entry in point.left_out],
        "counted": made.counted,
        **({"gaps": list(point.gaps)} if point.gaps else {}),
        **({"writer": dict(made.writer)} if made.writer else {}),
    }
