"""A worker that is killed while a model writes a summary: the job ends done once, and one summary stands."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Job, JobState, SideCallRow
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.prove import prove_all
from ctxengine.service.verify import verify_chains
from ctxengine.site.postgres.server import EmbeddedPostgres
from tests.faults.stage import Embedded, Stage, eventually, make_schema
from tests.shrinking import body, row_nine
from tests.summing import TOLD, Summing, told

pytestmark = pytest.mark.faults

DATABASE = "summary"
SILENT_S = 120.0
"""How long the first answer would take: longer than the test."""
PROMPT = "/v1/messages"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[StrictServer]:
    """A model that says nothing to the first who ask, and writes for the next."""
    replies = [told(stall_seconds=SILENT_S), told()]
    with StrictServer(StrictProvider(replies=replies)) as running:
        monkeypatch.setattr(settings, "CTX_PROVIDER_URLS", {"anthropic": running.url})
        monkeypatch.setattr(settings, "CTX_PROVIDER_KEYS", {"anthropic": Secret("key-of-a-test")})
        yield running


@pytest.fixture
def stage(
    server: EmbeddedPostgres, model: StrictServer, django_db_blocker: pytest.FixtureRequest
) -> Iterator[Stage]:
    """One worker on the embedded broker, which may call that model."""
    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        make_schema(server, DATABASE)
        folder = Path(tempfile.mkdtemp(dir=os.environ["CTX_TEST_RUN_FOLDER"]))
        access = {
            "CTX_PROVIDER_URLS": f"anthropic={model.url}",
            "ANTHROPIC_API_KEY": "key-of-a-test",
        }
        made = Stage(Embedded, folder / DATABASE, server, DATABASE, access)
        try:
            made.broker.start()
            made.worker.start()
            with made.on():
                yield made
        finally:
            made.end()


def prompts(model: StrictServer) -> list[str]:
    """What was asked for in words: counts are another matter."""
    log = model.provider.log.entries()
    return [entry.path for entry in log if entry.method == "POST" and entry.path == PROMPT]


def test_a_summary_whose_writer_is_killed_is_written_and_installed_once(
    stage: Stage, model: StrictServer
) -> None:
    runtime = Summing()
    job = runtime.press()
    eventually(lambda: prompts(model), "a question to the model", stage.said)
    stage.worker.kill()
    held = Job.objects.get(id=job.id)
    assert held.state == JobState.RUNNING
    assert not runtime.events(EventType.COMPACTED)
    stage.worker.start()
    eventually(lambda: Job.objects.get(id=job.id).finished_at, "the end of the job", stage.said)
    done = Job.objects.get(id=job.id)
    assert (done.state, done.attempts) == (JobState.DONE, 2), (done.error, done.log)
    assert len(prompts(model)) == 2
    (compacted,) = runtime.events(EventType.COMPACTED)
    assert compacted.payload["writer"]["job"] == str(job.id)
    assert not runtime.events(EventType.COMPACTION_REFUSED)
    outcomes = SideCallRow.objects.filter(job_id=job.id).values_list("outcome", flat=True)
    assert list(outcomes) == ["completed"]
    built = runtime.assemble()
    assert row_nine(body(built)).count(TOLD) == 1
    assert runtime.say("Understood.").next == "finish"
    assert all(report.problem is None for report in verify_chains())
    proved = list(prove_all())
    assert proved
    assert all(replay.identical for replay in proved)
