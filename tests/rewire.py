"""A recorded request as another provider would get it: same ledger, same decisions, another API."""

from __future__ import annotations

from unittest.mock import patch

from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.wire.registry import PROVIDER_API
from ctxengine.engine.wire.rules import Violation, violations
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import PlanRow, RequestRow, SessionRow
from ctxengine.service import rebuild as rebuild_module
from ctxengine.service.wiring import plan_from
from tests.cast import PROVIDERS

EVERY_API = (*PROVIDERS, "google", "ollama", "bedrock")
"""One provider for each API."""


def body_for(provider: str, session: SessionRow, row: RequestRow) -> bytes:
    """The body of a recorded request in the API of a provider; reasoning that only its own API understands stays out."""

    def bound_elsewhere(log: PostgresLog, plan_row: PlanRow) -> Plan:
        plan = plan_from(log, plan_row)
        if plan.provider == provider:
            return plan
        return plan.model_copy(update={"provider": provider, "wire_prefix_sha256": ""})

    with patch.object(rebuild_module, "plan_from", bound_elsewhere):
        return rebuild_module.rebuild_request(session, row, without_lost_reasoning=True).body


def broken_rules(session: SessionRow, row: RequestRow) -> list[tuple[str, Violation]]:
    """Every breach of any API's rules by this request, with the provider it would have gone to."""
    return [
        (provider, violation)
        for provider in EVERY_API
        for violation in violations(PROVIDER_API[provider], body_for(provider, session, row))
    ]
