"""How much of a request closed turns may take: the measured horizon, less what never moves (capacity spec 4; design 7.3, 7.16).

Everything here is read at run start and holds for the run. Sizes that change from day to day count with their caps, and what a
turn takes is learnt from the turns before the last batch boundary, so that the stable history keeps its forms in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.budget.arithmetic import Frame
from ctxengine.engine.budget.classes import BudgetClass
from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.capacity.profile import CapacityProfile
from ctxengine.engine.compaction.packet import FRAME_TOKENS
from ctxengine.engine.history.working_set import BATCH_TURNS, Room

TAIL_CLASSES = (
    BudgetClass.WORKING_STATE,
    BudgetClass.KNOWLEDGE,
    BudgetClass.RECALL,
    BudgetClass.RUNTIME,
)
"""Fresh rows that any step may bring."""
TAIL_SHARE = 0.25
"""Most of what stands behind the prefix that is kept for fresh rows; where caps are more, they are no use to a small model."""
TURN_SHARE_UNKNOWN, TURN_SHARE_LEAST, TURN_SHARE_MOST = 0.25, 0.125, 0.5
"""What the open turn is given of it before any was seen, at least, and at most."""
TURN_SHARE_TYPICAL = 0.0625
"""The least where what a turn takes as a rule is kept, not the largest."""
_DECAY = 0.3
PACKET_SHARE = 0.2
"""Most of the room that a packet may take."""
LEAST_PACKET_TOKENS = FRAME_TOKENS + 80
"""A packet of fewer tokens tells nothing."""


class RoomFigures(BaseModel):
    """The arithmetic of one plan's room, all in tokens of raw counts but for `horizon`."""

    model_config = ConfigDict(frozen=True)

    horizon: int
    """What the profile lets a prompt take, in the provider's own tokens."""
    factor_millionths: int
    usable: int
    """What of it a request may take: never more than the window leaves."""
    prefix: int
    tail: int
    """Kept for fresh rows; in a plan that keeps what turns take as a rule, so much of their caps as is more than that."""
    turn: int
    """Kept for the open turn."""
    tokens: int
    """Left for closed turns."""
    packet: int
    """What a packet may take of it; 0 where it would tell nothing."""

    @property
    def room(self) -> Room:
        """As the planner takes it."""
        return Room(self.tokens, self.packet)


def room_of(
    profile: CapacityProfile,
    fixed: Frame,
    policy: BudgetPolicy,
    *,
    turn_sizes: Sequence[int],
    skills: bool = False,
    open_turn: int = 0,
    typical: bool = False,
) -> RoomFigures:
    """The room that a profile and a plan leave for closed turns.

    Args:
        fixed: the plan's budget under the factor of the run.
        turn_sizes: tokens of turns before the last batch boundary as they stood while they were open, oldest first.
        skills: whether the plan has skills that can be loaded.
        open_turn: what the open turn takes already, where a plan is made inside it.
        typical: keep what a turn takes as a rule instead of the largest one seen lately, or the caps of fresh rows where those
            are more: where closed turns can give way inside the run at no more than they cost at its start.
    """
    usable = max(0, min(fixed.usable, math.floor(profile.usable / fixed.factor)))
    behind = max(0, usable - fixed.prefix)
    tail = min(_caps(policy, skills), int(behind * TAIL_SHARE))
    turn = max(_turn_reserve(turn_sizes, behind, typical), open_turn)
    # Hardly a run needs both to the full, and each turn pushed out early costs its bytes again.
    tail = max(0, tail - turn) if typical else tail
    left = max(0, behind - tail - turn)
    return RoomFigures(
        horizon=profile.usable,
        factor_millionths=round(fixed.factor * 1_000_000),
        usable=usable,
        prefix=fixed.prefix,
        tail=tail,
        turn=turn,
        tokens=left,
        packet=packet_tokens(left, policy),
    )


def with_room(figures: RoomFigures, tokens: int, policy: BudgetPolicy) -> RoomFigures:
    """The same figures with another room (tokens)."""
    left = max(0, tokens)
    return figures.model_copy(update={"tokens": left, "packet": packet_tokens(left, policy)})


def packet_tokens(room: int, policy: BudgetPolicy) -> int:
    """What a packet may take of a room; 0 where none is wanted or it would tell nothing."""
    if policy.compaction == "none":
        return 0
    allowed = min(policy.summary_tokens, int(room * PACKET_SHARE))
    return allowed if allowed >= LEAST_PACKET_TOKENS else 0


def _caps(policy: BudgetPolicy, skills: bool) -> int:
    wanted = (*TAIL_CLASSES, BudgetClass.SKILL_BODIES) if skills else TAIL_CLASSES
    return sum(policy.cap(name).tokens or 0 for name in wanted)


def _turn_reserve(sizes: Sequence[int], behind: int, typical: bool) -> int:
    """Room for the open turn: the largest seen lately, forgotten slowly, or what turns take as a rule."""
    if not sizes:
        return int(behind * TURN_SHARE_UNKNOWN)
    seen = 0.0
    for size in sizes[-2 * BATCH_TURNS :]:
        follow = (seen or size) + _DECAY * (size - (seen or size))
        seen = follow if typical else max(float(size), follow)
    share = TURN_SHARE_TYPICAL if typical else TURN_SHARE_LEAST
    least, most = int(behind * share), int(behind * TURN_SHARE_MOST)
    return min(max(math.ceil(seen), least), most)
