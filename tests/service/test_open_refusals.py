"""Failed opens and rotations leave a row, whatever rolled back around them."""

from __future__ import annotations

import pytest

from ctxengine.ledger.models import OpenRefusal, PlanRow, SessionRow
from ctxengine.service.configure_session import configure_session
from ctxengine.service.plan_specs import Configure
from ctxengine.service.specs import AgentRef, PolicySpec, ServiceError
from tests.cast import Runtime, new_actor, tool

pytestmark = pytest.mark.django_db


def test_a_session_that_cannot_open_leaves_its_class_and_no_session() -> None:
    actor = new_actor()
    with pytest.raises(ServiceError, match="agent"):
        Runtime(actor=actor, instructions="Word by word. " * 4_000)
    (kept,) = OpenRefusal.objects.filter(tenant_id=actor.tenant_id)
    assert (kept.code, kept.budget_class, kept.session_id) == ("plan_overflow", "agent", None)
    assert kept.needed > kept.available == 4_000
    assert (kept.engine, kept.provider, kept.agent_name) == ("suffix", "anthropic", "scout")
    assert not SessionRow.objects.filter(tenant_id=actor.tenant_id).exists()


def test_a_required_tool_that_cannot_be_defined_is_kept_under_the_tools() -> None:
    actor = new_actor()
    with pytest.raises(ServiceError):
        Runtime(actor=actor, tools=(tool("must", required=True, model_visible=False),))
    (kept,) = OpenRefusal.objects.filter(tenant_id=actor.tenant_id)
    assert (kept.code, kept.budget_class) == ("required_tool_missing", "tools")


def test_a_run_whose_rotation_is_refused_leaves_a_row_and_the_session_as_it_was() -> None:
    runtime = Runtime()
    wanted = Configure(agent=AgentRef(name="scout", version="2", instructions="Word. " * 8_000))
    configure_session(actor=runtime.actor, session_id=runtime.session, spec=wanted)
    with pytest.raises(ServiceError, match="agent"):
        runtime.ask("Hello?")
    (kept,) = OpenRefusal.objects.filter(tenant_id=runtime.actor.tenant_id)
    assert (kept.budget_class, kept.session_id) == ("agent", runtime.session)
    assert PlanRow.objects.filter(session_id=runtime.session).count() == 1
    assert runtime.row.runs == 0


def test_other_refusals_are_no_failed_opens() -> None:
    actor = new_actor()
    with pytest.raises(ServiceError):
        Runtime(actor=actor, policy=PolicySpec(caps={"nothing": 1}))
    assert not OpenRefusal.objects.filter(tenant_id=actor.tenant_id).exists()
