"""What a step is built from: recorded inputs, the session's share, and the decision that `prepare` takes (design 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.budget.yields import Allocation
from ctxengine.engine.compaction.acts import Marks
from ctxengine.engine.compaction.compactor import Outcome
from ctxengine.engine.compaction.packet import Packet
from ctxengine.engine.fresh import windowed_line
from ctxengine.engine.legs.leg import Leg, LegBody
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.request import MemoryLines, RunInput


class StepInputs(BaseModel):
    """Everything a request was built from, as the request row records it (design 4)."""

    model_config = ConfigDict(frozen=True)

    head: int
    """Ledger head when it was built."""
    content_head: int
    """Newest content event it saw."""
    boundary: int
    """The run's seed: history lies strictly below."""
    epoch: int
    engine: str
    builder: str
    renderer: str
    counter: str
    policy: str
    framing: str
    factor_millionths: int = 1_000_000
    now: str | None = None
    """Local time with offset, ISO 8601."""
    timezone: str = ""
    principal: str = ""
    scopes: tuple[str, ...] = ()
    scopes_shown: int | None = None
    """How many scopes row 14 names, where all of them would be over its class; None: all."""
    surface: str = ""
    memory_event: int | None = None
    """The `context.memory.read` event whose lines this step carries."""
    skills: tuple[int, ...] = ()
    """The `skill.loaded` events whose bodies this step carries, in load order."""
    fresh: str = ""
    """Digest of rows 11 to 14 as they were rendered; it stands in where their content was erased since."""
    knowledge_kept: int = 0
    recall_kept: int = 0
    recall_window: int = 0
    """Characters that the one line left of recall was cut to; 0: it is whole."""
    cut: int = 0
    pointer: int = 0
    active_pointer: int = 0
    history_ttl: Literal["5m", "1h"] = "5m"
    """Life asked for the history's cache entries; changes no byte the model reads."""
    opaque: dict[str, str] = {}
    """Digest of each unit that held opaque reasoning, by its sequence."""
    opaque_tokens: int = 0
    acts: int = 0
    """Newest act it saw: 0 when nothing but messages stands in the session."""
    state_event: int | None = None
    """Newest transition of the working state it shows."""
    packets: tuple[int, ...] = ()
    """`context.compacted` events whose summaries stand in row 9."""
    projection: int | None = None
    """The event with the engine's recorded decision about everything before the run (`history.project`)."""
    pinned: tuple[int, ...] = ()
    """Units an operator wants whole, by the sequence that opens them."""
    folded: tuple[int, ...] = ()
    excluded: tuple[str, ...] = ()
    """Items an operator left out."""
    sent: tuple[int, ...] = ()
    """`context.fresh.sent` events of earlier steps of the run whose blocks stand where they were sent."""
    sent_digests: dict[str, str] = {}
    """Digest of each repeated block as it was rendered here, by its event, where that keeps another one."""
    fresh_place: int = 0
    """What this step adds stands before the first unit from here on: one that no earlier request of the run has shown."""
    fresh_held: bool = False
    """Whether rows 11 to 14 say nothing in this step, because the newest answer waits for a tool that its provider runs."""
    fresh_event: int | None = None
    """The `context.fresh.sent` event with what this step adds to them."""
    marked: dict[str, str] = {}
    """Digest of each unit that an act of an operator shows in its own way, or that holds a note for a call of a provider's
    tool or for its result, by its sequence."""
    lone_results: bool = False
    """Whether results of a provider's tools stand as notes where their call is not in view; older requests sent them."""
    unsent: tuple[str, ...] | None = None
    """Ids of calls of a provider's tools that stand as notes with their results; None: nobody recorded them, or all do."""
    summary: str = ""
    """Digest of row 9 as it was rendered with its summaries; it stands in where one of them was erased since."""
    legs: tuple[Leg, ...] = ()
    """Further models the request was sized for."""
    leg_bodies: tuple[LegBody, ...] = ()
    """What was built for each of them."""

    @property
    def marks(self) -> Marks:
        """The operator's acts it saw."""
        return Marks(self.pinned, self.folded, self.excluded)


@dataclass(frozen=True, slots=True)
class Memory:
    """A step's row 13 before the allocation, best first, as (id, text)."""

    knowledge: Sequence[tuple[str, str]] = ()
    recall: Sequence[tuple[str, str]] = ()
    corrections: Sequence[tuple[str, str]] = ()

    def kept(self, knowledge: int, recall: int, window: int = 0) -> MemoryLines:
        """What stays after the allocation; corrections never yield.

        Args:
            window: characters that the lines of recall are cut to, with a mark that says so; 0 leaves them whole.
        """
        lines = self.recall[:recall]
        if window:
            lines = [(name, windowed_line(text, window)) for name, text in lines]
        return MemoryLines(self.knowledge[:knowledge], lines, self.corrections)


def as_it_is(text: str) -> str | None:
    """For logs that seal nothing."""
    return text


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a session contributes to each of its requests."""

    plan: Plan
    nonce_key: bytes = field(repr=False)
    session_key: str
    imported: bool = False
    unseal: Callable[[str], str | None] = as_it_is
    """Opens the sealed body of a native window; None where it cannot be opened."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A decision: the inputs to record, the floors to raise first, and what the build will read."""

    inputs: StepInputs
    allocation: Allocation
    run: RunInput
    compaction: Outcome | None = None
    """What became of the history that the cut drops; None where no cut was made or none is to be summarised."""
    packets: tuple[Packet, ...] = ()
    """Summaries that row 9 shows; those about to be installed have no event yet."""


def inputs_of(data: dict[str, Any]) -> StepInputs:
    """Read recorded inputs back."""
    return StepInputs.model_validate(data)
