"""Engine errors as refusals with a status, for every use case (design 5: problem documents with stable codes)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.errors import (
    BudgetExceeded,
    EngineError,
    OrphanPair,
    PlanOverflow,
    PrefixDrift,
    RequiredToolMissing,
    RunHasNoInput,
    WireInvalid,
)
from ctxengine.engine.lexeme import LexemeError
from ctxengine.engine.plan.schema import SchemaError
from ctxengine.engine.ports import StaleHead
from ctxengine.service.specs import ServiceError

_STATUS: tuple[tuple[type[EngineError], str, int], ...] = (
    (PlanOverflow, "plan_overflow", 422),
    (RequiredToolMissing, "required_tool_missing", 422),
    (BudgetExceeded, "budget_exceeded", 409),
    (PrefixDrift, "prefix_drift", 409),
    (OrphanPair, "calls_pending", 409),
    (RunHasNoInput, "no_input", 409),
    (WireInvalid, "wire_invalid", 422),
)


@contextmanager
def refusing() -> Iterator[None]:
    """Turn what the engine raises into a `ServiceError`."""
    try:
        yield
    except StaleHead as error:
        raise ServiceError(
            "stale_head", 409, "Another writer was faster on this session; read it again and retry."
        ) from error
    except (ContentError, LexemeError) as error:
        raise ServiceError("invalid_content", 422, str(error)) from error
    except SchemaError as error:
        raise ServiceError("invalid_schema", 422, str(error)) from error
    except EngineError as error:
        raise refusal_of(error) from error


def refusal_of(error: EngineError) -> ServiceError:
    """The refusal that says what an engine error says."""
    for kind, code, status in _STATUS:
        if isinstance(error, kind):
            return ServiceError(code, status, error.message, **error.numbers)
    return ServiceError(error.code, 422, str(error))
