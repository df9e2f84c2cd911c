"""Whose keys a policy may spend: the session's own provider's, and those that the operator lists."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.ledger.models import SessionRow
from tests.api.door import Door, key_for

OTHERS = ["ollama/evil", "openai/gpt-5-mini", "compatible/x", "google/gemini-3-flash"]


def policy(model: str) -> dict[str, Any]:
    return {"policy": {"compaction": "model", "summary_model": model}}


def opened(door: Door, model: str) -> Any:
    agent = {"name": "a", "version": "1", "instructions": "Help."}
    session = {"provider": "anthropic", "name": "claude-sonnet-4-6"}
    return door.post("sessions", {"model": session, "agent": agent, **policy(model)})


@pytest.mark.parametrize("model", OTHERS)
def test_a_runtimes_key_cannot_have_another_provider_called(tenant: Any, model: str) -> None:
    refused = opened(Door(key_for(tenant, "runtime")), model)
    assert (refused.status, refused.code) == (422, "summary_model_not_allowed")
    assert "CTX_SUMMARY_PROVIDERS" in refused.json["detail"]
    assert not SessionRow.objects.filter(tenant_id=tenant).exists()


@pytest.mark.parametrize("model", ["cheapest", "session", "claude-haiku-4-5", "anthropic/x"])
def test_the_sessions_own_provider_may_always_be_named(door: Door, model: str) -> None:
    assert opened(door, model).status == 201


def test_what_the_operator_lists_may_be_named(door: Door, settings: Any) -> None:
    settings.CTX_SUMMARY_PROVIDERS = ("openai",)
    assert opened(door, "openai/gpt-5-mini").status == 201
    assert opened(door, "ollama/evil").status == 422


@pytest.mark.parametrize("model", OTHERS)
def test_nor_by_choosing_another_policy_later(door: Door, model: str) -> None:
    session = door.open()
    refused = door.send("PATCH", f"sessions/{session}", policy(model))
    assert (refused.status, refused.code) == (422, "summary_model_not_allowed")
    assert door.send("PATCH", f"sessions/{session}", policy("session")).status == 200


def test_a_policy_is_judged_by_the_provider_it_is_chosen_together_with(door: Door) -> None:
    session = door.open()
    model = {"provider": "openai", "name": "gpt-5.4"}
    both = {"model": model, **policy("openai/gpt-5-mini")}
    assert door.send("PATCH", f"sessions/{session}", both).status == 200
