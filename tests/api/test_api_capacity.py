"""Capacity profiles over REST: what was measured, and asking for a probe."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from ctxengine.engine.capacity.profile import metadata_profile
from ctxengine.ledger.models import Job, JobState
from ctxengine.service.probe.job import step_aside
from ctxengine.service.probe.profiles import keep_profile
from tests.api.door import Door

WANTED = {"provider": "ollama", "model": "tiny:1b", "largest": 8_000}


def test_the_newest_profile_of_each_measured_model_is_listed(door: Door, tenant: UUID) -> None:
    assert door.get("capacity-profiles").ok() == {"items": []}
    for window in (4_000, 8_000):
        known = metadata_profile(
            provider="ollama", model="tiny:1b", declared_window=window, max_output=512
        )
        keep_profile(tenant_id=tenant, profile=known)
    (item,) = door.get("capacity-profiles").ok()["items"]
    assert item["profile"]["declared_window"] == 8_000


def test_another_tenant_sees_none_of_it(door: Door, stranger: Door, tenant: UUID) -> None:
    known = metadata_profile(provider="p", model="m", declared_window=9, max_output=1)
    keep_profile(tenant_id=tenant, profile=known)
    assert stranger.get("capacity-profiles").ok() == {"items": []}


def test_a_probe_is_a_job_and_asking_twice_gives_the_same_one(door: Door, tenant: UUID) -> None:
    first = door.post("capacity-profiles", WANTED)
    assert first.status == 202
    again = door.post("capacity-profiles", WANTED)
    assert first.json["job"]["id"] == again.json["job"]["id"]
    assert Job.objects.get(tenant_id=tenant).arguments["largest"] == 8_000


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"largest": 3}, 422),
        ({"time_box_s": -1}, 422),
        ({"model": ""}, 422),
        ({"unknown": 1}, 400),
        ({"provider": "anthropic"}, 409),
    ],
)
def test_what_cannot_be_probed_is_refused_with_a_reason(
    door: Door, change: dict[str, Any], status: int
) -> None:
    refused = door.post("capacity-profiles", {**WANTED, **change})
    assert refused.status == status, refused.raw
    assert refused.code


@pytest.mark.parametrize(
    "listed",
    [
        {"compatible": "https://api.groq.com/openai/v1"},
        {"ollama": "https://ollama.com"},
        {"compatible": "http://8.8.8.8/v1"},
    ],
)
def test_a_hosted_model_costs_money_under_whatever_name_it_is_listed(
    door: Door, settings: Any, listed: dict[str, str]
) -> None:
    settings.CTX_PROVIDER_URLS = listed
    (provider,) = listed
    wanted = {**WANTED, "provider": provider}
    refused = door.post("capacity-profiles", wanted)
    assert (refused.status, refused.code) == (409, "probe_not_allowed")
    assert door.post("capacity-profiles", {**wanted, "hosted": True}).status == 202


def test_a_probe_behind_a_session_wants_a_session_of_ones_own(
    door: Door, stranger: Door, tenant: UUID
) -> None:
    session = door.open()
    for asker, named in ((stranger, session), (door, str(uuid4()))):
        refused = asker.post("capacity-profiles", {**WANTED, "session_id": named})
        assert (refused.status, refused.code) == (404, "not_found")
    assert not Job.objects.filter(kind="capacity.probe").exists()
    taken = door.post("capacity-profiles", {**WANTED, "session_id": session})
    assert taken.status == 202
    assert str(Job.objects.get(id=taken.json["job"]["id"]).session_id) == session


def test_a_real_turn_ends_the_probe_of_its_model_and_of_no_other(door: Door, tenant: UUID) -> None:
    first = door.post("capacity-profiles", WANTED).json["job"]["id"]
    door.post("capacity-profiles", {**WANTED, "model": "other:1b"})
    step_aside(tenant, "ollama", "tiny:1b")
    ended = Job.objects.filter(tenant_id=tenant, state=JobState.CANCELLED)
    assert [job.subject for job in ended] == ["ollama/tiny:1b"]
    assert Job.objects.get(tenant_id=tenant, state=JobState.QUEUED).subject == "ollama/other:1b"
    assert door.post("capacity-profiles", WANTED).json["job"]["id"] != first
