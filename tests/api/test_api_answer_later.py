"""A 202 over REST: the job it names, waiting for it, and what a repeat of the call gets."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest

from ctxengine.ledger.models import Job
from ctxengine.service import assemble as assembling
from ctxengine.service.jobs.wait_for import wait_for
from tests.api.door import Answer, Door, api_document
from tests.shrinking import PROSE
from tests.summing import TOLD, provider_of, told
from tests.work_off import work_off

pytestmark = pytest.mark.django_db

POLICY = {"reserve": 500, "history_floor": 400, "compaction": "model"}


@dataclass
class Talk:
    """A session over REST that comes under pressure."""

    door: Door
    tenant: uuid.UUID
    policy: dict[str, Any] = field(default_factory=lambda: dict(POLICY))

    def __post_init__(self) -> None:
        model = {"provider": "anthropic", "name": "claude-sonnet-4-6", "window": 9_000}
        self.session = self.door.open(model=model, policy=self.policy, tools=[])

    def press(self, **fields: Any) -> Answer:
        """Talk until `assemble` answers 202; gives that answer."""
        for number in range(40):
            self.run = self.door.run(self.session, f"Question {number}? " + PROSE * 4)
            answer = self.door.post(f"runs/{self.run}/assemble", {}, **fields)
            if answer.status == 202:
                return answer
            answer.ok()
            self.door.says(self.run, f"Decision {number}. " + PROSE * 4)
            self.door.post(f"runs/{self.run}/end", {"outcome": "completed"})
        raise AssertionError("History never came under pressure.")

    def work(self) -> list[Any]:
        return work_off(self.tenant, kind="compaction.summary")

    def assemble(self, query: str = "", **options: Any) -> Answer:
        return self.door.post(f"runs/{self.run}/assemble{query}", {}, **options)


@pytest.fixture
def talk(door: Door, tenant: uuid.UUID) -> Talk:
    return Talk(door, tenant)


def test_a_202_names_the_job_and_when_to_ask_again(talk: Talk, settings: Any) -> None:
    with provider_of(settings, told()):
        later = talk.press()
        document = later.json
        assert later.headers["Retry-After"] == str(document["retry_after_s"])
        job = talk.door.get(document["job"]["url"].removeprefix("/api/v1/")).ok()
        assert (job["id"], job["kind"]) == (document["job"]["id"], "compaction.summary")
        assert job["session_id"] == talk.session
        assert document["job"]["state"] == "queued"
        assert talk.assemble().json["job"]["id"] == job["id"]
        assert talk.work() == [("compaction.summary", "done")]
        built = talk.assemble()
        assert built.status == 200
        assert TOLD in json.dumps(built.json["request"])
        assert talk.door.replays(built.json["request_id"])
    found = talk.door.get(f"sessions/{talk.session}/compactions").ok()["items"][0]
    assert (found["kind"], found["writer"]["job"]) == ("model", job["id"])


def test_a_202_leaves_no_mark_so_that_the_same_key_gets_the_request_later(
    talk: Talk, settings: Any
) -> None:
    with provider_of(settings, told()):
        talk.press()
        first = talk.assemble(once="step-1")
        again = talk.assemble(once="step-1")
        assert first.status == again.status == 202
        assert "Idempotency-Replayed" not in again.headers
        assert first.json["job"]["id"] == again.json["job"]["id"]
        talk.work()
        built = talk.assemble(once="step-1")
        assert built.status == 200
        replayed = talk.assemble(once="step-1")
        assert replayed.headers["Idempotency-Replayed"] == "true"
        assert replayed.raw == built.raw
        assert Job.objects.filter(tenant_id=talk.tenant, kind="compaction.summary").count() == 1


def test_whoever_waits_gets_the_request_and_whoever_waits_too_short_a_job(
    talk: Talk, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider_of(settings, told()):
        talk.press()
        assert talk.assemble("?compaction=wait&wait_s=0").status == 202

        def worked_off(job: Job, seconds: float) -> Job:
            talk.work()
            return wait_for(job, seconds)

        monkeypatch.setattr(f"{assembling.__name__}.wait_for", worked_off)
        built = talk.assemble("?compaction=wait")
        assert built.status == 200
        assert TOLD in json.dumps(built.json["request"])


@pytest.mark.parametrize("query", ["?compaction=now", "?wait_s=301", "?wait_s=-1", "?wait=1"])
def test_other_ways_of_waiting_are_refused_by_name(query: str, talk: Talk) -> None:
    run = talk.door.run(talk.session)
    answer = talk.door.post(f"runs/{run}/assemble{query}", {})
    assert answer.status == 400
    assert answer.code in {"invalid_parameter", "unknown_parameter"}


def test_a_report_that_asks_for_the_next_request_is_told_of_the_job_as_well(
    talk: Talk, settings: Any
) -> None:
    with provider_of(settings, told()):
        talk.press()
        report = {"message": "And the south? " + PROSE, "assemble": True}
        later = talk.door.post(f"runs/{talk.run}/input", report, once="input-1").ok()
        job = later["assemble_later"]["job"]["id"]
        assert "assembled" not in later
        assert "assemble_problem" not in later
        talk.work()
        again = talk.door.post(f"runs/{talk.run}/input", report, once="input-1").ok()
        assert "assemble_later" not in again
        request = json.dumps(again["assembled"]["request"])
        assert request.count("And the south?") == 1
        assert str(Job.objects.get(tenant_id=talk.tenant, kind="compaction.summary").id) == job


def test_by_hand_a_model_answers_with_its_job_and_a_repeat_names_the_same(
    talk: Talk, settings: Any
) -> None:
    with provider_of(settings, told()):
        for number in range(3):
            run = talk.door.run(talk.session, f"Question {number}? " + PROSE * 4)
            talk.door.assemble(run)
            talk.door.says(run, f"Decision {number}. " + PROSE * 4)
            talk.door.post(f"runs/{run}/end", {"outcome": "completed"})
        ask = {"summariser": "model", "note": "by me", "through": 12}
        asked = talk.door.post(f"sessions/{talk.session}/compactions", ask, once="c-1")
        assert asked.status == 202
        talk.work()
        again = talk.door.post(f"sessions/{talk.session}/compactions", ask, once="c-1")
    assert again.status == 202
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json["job"] | {"state": "queued", "percent": 0, "phase": ""} == asked.json["job"]
    assert again.json["job"]["state"] == "done"
    (line,) = talk.door.get(f"sessions/{talk.session}/compactions").ok()["items"]
    assert (line["kind"], line["reason"]) == ("model", "by me")


def test_by_hand_without_a_key_it_is_refused_with_the_providers_code(
    talk: Talk, settings: Any
) -> None:
    settings.CTX_PROVIDER_KEYS = {}
    for _ in range(3):
        run = talk.door.run(talk.session, PROSE * 4)
        talk.door.assemble(run)
        talk.door.says(run, PROSE * 4)
        talk.door.post(f"runs/{run}/end", {"outcome": "completed"})
    refused = talk.door.post(
        f"sessions/{talk.session}/compactions", {"summariser": "model", "through": 12}
    )
    assert (refused.status, refused.code) == (409, "no_summariser")
    assert refused.json["provider_code"] == "no_key"
    assert "no_key" in refused.json["detail"]


def test_the_document_describes_the_202_of_both_calls() -> None:
    paths = api_document()["paths"]
    for path in ("/api/v1/runs/{run}/assemble", "/api/v1/sessions/{session}/compactions"):
        content = paths[path]["post"]["responses"]["202"]["content"]
        schema = content["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/AnswerLater"}
