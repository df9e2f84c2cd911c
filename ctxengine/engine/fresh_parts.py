"""Rows 11 to 14 part by part, and what a step adds of them where earlier blocks stay (spec, assembly order; design 7.12).

Parts are compared as they were offered, before any of their lines yielded, and as they would stand in one step that is always
the same: nonces of some parts change with the step. A part that stands already costs nothing and has nothing to yield.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.fresh import Runtime, memory_text, runtime_text
from ctxengine.engine.history.projection import SentBlock
from ctxengine.engine.inputs import Memory
from ctxengine.engine.items import ItemKind
from ctxengine.engine.plan.skills import LoadedSkill, skill_text
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.request import MemoryLines, RunInput
from ctxengine.engine.tail import NO_TAIL, NO_THREAD, Tail, thread_text, tools_text
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.working_state.render import block_text
from ctxengine.engine.working_state.state import EMPTY, WorkingState, state_trust

_ONE_STEP = "="
"""Stands in for the step where parts are compared; no content head is written so."""

_STATE, _RUNTIME = "state", "runtime"
_THREAD, _INTENT, _TOOLS = "thread", "intent", "tools"
_IN_FORCE = frozenset({_STATE, _RUNTIME})
"""Parts that hold beyond the run that said them, until they are said again or taken back; the others speak of one message."""
_MEMORY = (("knowledge", "knowledge"), ("recall", "recall"), ("corrections", "correction"))
_GO_ON = "[runtime] Go on from here: what the user said last may have come in while the answer above was being written."
"""Said where the step would end on the model's own words and nothing is new: providers take no conversation that ends so."""
_NAMES = {
    _STATE: "working state",
    "knowledge": "knowledge",
    "recall": "recalled lines",
    "corrections": "corrections",
    _RUNTIME: "runtime facts",
    _THREAD: "the thread",
    _INTENT: "intent and stance",
    _TOOLS: "the schemas of listed tools",
}


class FreshPart(NamedTuple):
    """One part of the fresh rows as it is sent."""

    key: str
    row: int
    text: str
    trust: Trust


@dataclass(frozen=True, slots=True)
class Offer:
    """What a step has for its fresh rows, before anything yields."""

    skills: Sequence[LoadedSkill]
    state: WorkingState
    memory: Memory
    runtime: Runtime
    tail: Tail = NO_TAIL
    standing: frozenset[str] = frozenset()
    """Parts that earlier blocks of the run hold as they are offered now."""
    digests: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    """Parts that earlier blocks hold and that hold nothing any more."""

    @property
    def new(self) -> Offer:
        """Only what no block holds: this is what the step pays for."""
        kept = self.standing
        memory = Memory(
            *(() if kind in kept else getattr(self.memory, kind) for kind, _ in _MEMORY)
        )
        return replace(
            self,
            skills=[skill for skill in self.skills if _skill_key(skill) not in kept],
            state=EMPTY if _STATE in kept else self.state,
            memory=memory,
            runtime=Runtime() if _RUNTIME in kept else self.runtime,
            tail=replace(
                self.tail,
                intent="" if _INTENT in kept else self.tail.intent,
                thread=NO_THREAD if _THREAD in kept else self.tail.thread,
                tools="" if _TOOLS in kept else self.tail.tools,
            ),
        )

    @property
    def held(self) -> Offer:
        """Nothing new, and what stands stays; the next step offers it again."""
        return Offer(
            (), EMPTY, Memory(), Runtime(), NO_TAIL, frozenset(self.digests), self.digests, ()
        )


def without_fresh(run: RunInput) -> RunInput:
    """The run without rows 11 to 14, where a step holds them back."""
    return replace(
        run, skills=(), state=EMPTY, memory=MemoryLines(), runtime=Runtime(), tail=NO_TAIL
    )


def fresh_text(run: RunInput) -> str:
    """All of rows 11 to 14 as one block."""
    return "\n".join(part.text for part in _parts_of(run, run.step))


def against(
    offer: Offer,
    sent: Sequence[SentBlock],
    nonce_key: bytes,
    *,
    kept: Sequence[SentBlock] = (),
) -> Offer:
    """The offer compared with what the run's blocks hold, and what blocks of earlier runs still say.

    Args:
        kept: blocks of closed turns that stand as they were sent. Each run says anew what holds in it, so they spare it
            nothing; but what they say and no longer holds is taken back.
    """
    known = _held_by(sent)
    told = {key: digest for key, digest in _still_said(kept).items() if key not in known}
    known = {key: digest for key, digest in known.items() if digest}
    memory = MemoryLines(offer.memory.knowledge, offer.memory.recall, offer.memory.corrections)
    parts = _parts(
        nonce_key, _ONE_STEP, offer.skills, offer.state, memory, offer.runtime, offer.tail
    )
    digests = {part.key: sha256_hex(part.text.encode("utf-8", "surrogatepass")) for part in parts}
    return replace(
        offer,
        standing=frozenset(key for key, digest in digests.items() if known.get(key) == digest),
        digests=digests,
        gone=tuple(key for key in (*told, *known) if key not in digests),
    )


def _held_by(blocks: Sequence[SentBlock]) -> dict[str, str]:
    """The newest digest of each part in these blocks; empty for one that was taken back."""
    held: dict[str, str] = {}
    for block in blocks:
        held |= block.rows
    return held


def _still_said(kept: Sequence[SentBlock]) -> dict[str, str]:
    """What blocks of earlier runs say that would be read as holding now."""
    return {key: digest for key, digest in _held_by(kept).items() if digest and key in _IN_FORCE}


def adding(run: RunInput, offer: Offer, counter: TokenCounter) -> RunInput:
    """The step with only what its fresh rows add to the blocks that stand already.

    Args:
        run: with the skills, state, memory lines and runtime facts that are new and have not yielded.
    """
    parts = _parts_of(run, run.step)
    sent = {part.key for part in parts}
    # A part that changed and then yielded altogether leaves an old version standing that no longer holds.
    replaced = {key for block in run.sent for key, digest in block.rows.items() if digest}
    if run.projection is not None:
        replaced |= _still_said(run.projection.blocks).keys() - _held_by(run.sent).keys()
    lost = [key for key in offer.digests if key in replaced - offer.standing - sent]
    gone = (*offer.gone, *lost)
    lines = [(part.row, part.trust, part.text) for part in parts]
    if gone:
        names = ", ".join(_NAMES.get(key, "a loaded skill") for key in gone)
        note = f"[runtime] No longer valid, with nothing in its place: {names} given above."
        lines.append((14, Trust.PLATFORM, note))
    if not lines and not run.holds_fresh and _ends_on_an_answer(run):
        lines.append((14, Trust.PLATFORM, _GO_ON))
    by_row: dict[int, int] = {}
    by_trust: dict[str, int] = {}
    for row, trust, text in lines:
        tokens = counter.text(text)
        by_row[row] = by_row.get(row, 0) + tokens
        by_trust[trust.value] = by_trust.get(trust.value, 0) + tokens
    return replace(
        run,
        added="\n".join(text for _, _, text in lines),
        added_tokens=by_row,
        added_trust=by_trust,
        added_rows={key: offer.digests[key] for key in sent} | dict.fromkeys(gone, ""),
    )


def _ends_on_an_answer(run: RunInput) -> bool:
    """Whether the open run's last words are the model's: input that came in meanwhile stands in front of them."""
    return bool(run.active) and run.active[-1].items[-1].kind is ItemKind.ASSISTANT_MESSAGE


def _parts_of(run: RunInput, step: str) -> list[FreshPart]:
    return _parts(run.nonce_key, step, run.skills, run.state, run.memory, run.runtime, run.tail)


def _parts(
    nonce_key: bytes,
    step: str,
    skills: Sequence[LoadedSkill],
    state: WorkingState,
    memory: MemoryLines,
    runtime: Runtime,
    tail: Tail,
) -> list[FreshPart]:
    """The parts that hold something, in the order in which they stand."""
    found = [
        FreshPart(_skill_key(skill), 11, skill_text(skill, nonce_key), skill.trust)
        for skill in skills
    ]
    found.append(FreshPart(_TOOLS, 11, tools_text(tail, nonce_key), tail.tools_trust))
    found.append(FreshPart(_STATE, 12, block_text(state, nonce_key, step), state_trust(state)))
    found.append(FreshPart(_THREAD, 12, thread_text(tail, nonce_key, step), tail.thread_trust))
    for kind, name in _MEMORY:
        text = memory_text(getattr(memory, kind), kind=name, nonce_key=nonce_key, step=step)
        found.append(FreshPart(kind, 13, text, Trust.MEMORY))
    found.append(FreshPart(_RUNTIME, 14, runtime_text(runtime), Trust.PLATFORM))
    found.append(FreshPart(_INTENT, 14, tail.intent, Trust.PLATFORM))
    return [part for part in found if part.text]


def _skill_key(skill: LoadedSkill) -> str:
    return f"skill:{skill.sequence}"
