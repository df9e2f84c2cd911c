"""What a replay runs over: a transcript as a row of beats, whatever it was read from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxengine.engine.events import EventType
from ctxengine.engine.inputs import Memory, StepInputs
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.plan.plan import PinnedTool, Plan
from ctxengine.engine.trust.levels import Trust

NO_MEMORY = Memory()
BeatKind = Literal["message", "step", "plan", "act"]


@dataclass(frozen=True, slots=True)
class Beat:
    """One thing that happened: a message, the moment a model was asked, a plan, or any other event."""

    kind: BeatKind
    place: int
    """Index of the message in the transcript, or the sequence of the event."""
    type: EventType | None = None
    """None for a step."""
    at: float | None = None
    """Seconds since the epoch; None where the transcript does not say."""
    format: ContentFormat = ContentFormat.TEXT
    raw: str = field(default="", repr=False)
    trust: Trust = Trust.USER
    source: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    run: str = ""
    answers: tuple[int, int] | None = None
    """For a result: (place, ordinal) of the call it answers."""
    is_error: bool = False
    opens_run: bool = False
    by_platform: bool = False
    """For a result: given by the platform itself, hence counted whole."""
    plan: Plan | None = None
    """For a plan: as it was pinned."""
    inputs: StepInputs | None = None
    """For a step of a live session: what it was built from."""
    memory: Memory = NO_MEMORY
    has_body: bool = True


@dataclass(frozen=True, slots=True)
class Source:
    """A transcript ready to be replayed."""

    name: str
    title: str
    provider: str
    model: str
    """Model of the original."""
    beats: Sequence[Beat] = field(repr=False)
    instructions: str = field(default="", repr=False)
    tools: Sequence[PinnedTool] = field(default=(), repr=False)
    plan: Plan | None = field(default=None, repr=False)
    """The pinned plan of a live session; None for a foreign transcript, which gets one of its own."""
    engine: str = "suffix"
    tenant: str = "lab"
    session: str = "lab"
    nonce_key: bytes = field(default=b"replay-lab-key-of-thirty-2-bytes", repr=False)
    ledger_name: Callable[[str], str] = field(default=str, repr=False)
    """From a tool's name as the transcript spells it to the ledger's own."""

    @property
    def live(self) -> bool:
        """Whether it is a session that was assembled by this product: then a replay can be held against what was sent."""
        return self.plan is not None

    @property
    def steps(self) -> int:
        """How often a model was asked."""
        return sum(beat.kind == "step" for beat in self.beats)
