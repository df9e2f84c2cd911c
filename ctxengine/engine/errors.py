"""Errors of the engine: each says what, limit, found and what to do (style 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxengine.engine.manifest import YieldStep


class EngineError(Exception):
    """Base of all engine errors. `code` is stable and goes into problem documents."""

    code = "engine_error"

    def __init__(self, message: str, **numbers: object) -> None:
        super().__init__(message)
        self.message = message
        self.numbers = numbers


class PlanOverflow(EngineError):
    """A prefix class exceeds its cap: the session must not open (frozen-prefix spec, The budget allocator)."""

    code = "plan_overflow"

    def __init__(self, budget_class: str, needed: int, cap: int, hint: str) -> None:
        super().__init__(
            f"The class {budget_class} needs {needed:,} tokens; the policy allows {cap:,}. {hint}",
            budget_class=budget_class,
            needed=needed,
            available=cap,
        )


class RequiredToolMissing(EngineError):
    """A tool that the configuration requires cannot be defined: the session must not open (frozen-prefix spec)."""

    code = "required_tool_missing"

    def __init__(self, tool: str, why: str) -> None:
        super().__init__(
            f"The tool {tool} is required and cannot be defined: {why}. Make room for it, grant what it needs, or require it "
            "no longer.",
            tool=tool,
        )


class BudgetExceeded(EngineError):
    """What may never yield does not fit. It names the largest class that holds its ground."""

    code = "budget_exceeded"
    steps: Sequence[YieldStep] = ()
    """The yield ladder as far as it went, for the pressure event; empty where no step was asked."""

    def __init__(self, budget_class: str, needed: int, available: int, hint: str) -> None:
        super().__init__(
            f"The class {budget_class} needs {needed:,} tokens; {available:,} are left for it. {hint}",
            budget_class=budget_class,
            needed=needed,
            available=available,
        )


class PrefixDrift(EngineError):
    """A pinned plan no longer renders to the hash that was recorded for it."""

    code = "prefix_drift"


class OrphanPair(EngineError):
    """A call without its result, or a result without its call, would go on the wire."""

    code = "orphan_pair"


class WireInvalid(EngineError):
    """The rendered body breaks a rule of the provider's API."""

    code = "wire_invalid"


class LayoutBreach(EngineError):
    """An item stands in a row or region it does not belong to."""

    code = "layout_breach"


class RunHasNoInput(EngineError):
    """A request without any user content cannot be built."""

    code = "no_input"
