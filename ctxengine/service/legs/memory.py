"""What a process remembers of a session's legs; it can be lost at any moment (design 12)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ctxengine.engine.legs.build_leg import CountedUnits
from ctxengine.engine.memo import BuildMemo
from ctxengine.engine.plan.plan import Plan


@dataclass(slots=True)
class LegMemory:
    """One leg's."""

    memo: BuildMemo = field(default_factory=BuildMemo)
    counted: CountedUnits = field(default_factory=dict)
    prefix: tuple[Plan, int] | None = None
    """The session's plan, and its region A by the leg's counter."""
