"""Imports: the list, the report, the form."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from pytest_django import Settings

from ctxengine.engine.importers.registry import FORMATS
from ctxengine.ledger.models import ImportRow, Job, JobState, SessionRow
from ctxengine.service import import_transcript
from ctxengine.service.expire import ask_for_upkeep
from ctxengine.service.imports import job as import_job
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.jobs.context import JobContext
from ctxengine.service.jobs.retry import retry_job
from ctxengine.service.jobs.run import run_job
from ctxengine.service.specs import Actor
from inspector.pages import imports as page_of_imports
from tests.inspector.conftest import Cast
from tests.work_off import work_off

TRANSCRIPT = json.dumps(
    {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is left?"},
            {"role": "assistant", "content": "Two boxes."},
        ],
    }
).encode()


def upload(data: bytes, name: str = "talk.json") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


def test_a_transcript_is_imported_once(cast: Cast) -> None:
    url = cast.url("imports/")
    first = cast.operator.post(url, {"file": upload(TRANSCRIPT)})
    assert first.status_code == 200, first.content.decode()[:3000]
    assert "✓ Imported" in first.content.decode()
    again = cast.operator.post(url, {"file": upload(TRANSCRIPT)})
    assert "nothing changed" in again.content.decode()
    assert ImportRow.objects.filter(tenant_id=cast.tenant.id).count() == 1
    page = cast.page(f"imports/{ImportRow.objects.get(tenant_id=cast.tenant.id).sha256}/")
    assert "Every item of the file is accounted for" in page


def test_the_form_names_every_format_that_is_read(cast: Cast) -> None:
    page = cast.page("imports/")
    refusal = cast.operator.post(cast.url("imports/"), {"file": upload(b'{"a": 1}')})
    for name in FORMATS:
        assert name in page
        assert name in refusal.content.decode()


def test_a_rehearsal_keeps_nothing(cast: Cast) -> None:
    response = cast.operator.post(
        cast.url("imports/"), {"file": upload(TRANSCRIPT), "rehearse": "1"}
    )
    assert "nothing was kept" in response.content.decode()
    assert not ImportRow.objects.exists()


def test_what_is_no_transcript_is_refused_with_the_reason(cast: Cast) -> None:
    response = cast.operator.post(cast.url("imports/"), {"file": upload(b"<html>hello")})
    assert response.status_code == 422
    assert "✕ Refused" in response.content.decode()


def test_a_file_over_the_limit_is_not_read(cast: Cast, settings: Settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100_000
    response = cast.operator.post(cast.url("imports/"), {"file": upload(b"x" * 200_000)})
    assert response.status_code == 413
    assert "0.2 MB; at most 0.1 MB are read here" in response.content.decode()


def test_no_file_and_an_empty_file_are_told(cast: Cast) -> None:
    assert cast.operator.post(cast.url("imports/")).status_code == 400
    assert (
        "The file is empty"
        in cast.operator.post(cast.url("imports/"), {"file": upload(b"")}).content.decode()
    )


def test_a_viewer_sees_no_form_and_cannot_post(cast: Cast) -> None:
    assert b'type="file"' not in cast.viewer.get(cast.url("imports/")).content
    response = cast.viewer.post(cast.url("imports/"), {"file": upload(TRANSCRIPT)})
    assert response.status_code == 403
    assert not ImportRow.objects.exists()


def test_a_hostile_file_name_is_only_text(cast: Cast) -> None:
    name = "<img src=x onerror=alert(1)>\u202e.json"
    page = cast.operator.post(
        cast.url("imports/"), {"file": upload(TRANSCRIPT, name)}
    ).content.decode()
    assert "<img" not in page
    assert "\u202e" not in page


@pytest.fixture
def by_job(monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path) -> Path:
    """Let every upload go to a job; gives the folder in which uploads wait."""
    monkeypatch.setattr(page_of_imports, "AT_ONCE_BYTES", 1)
    settings.CTX_DATA_DIR = tmp_path
    return tmp_path / "uploads"


def progress_of(cast: Cast, **headers: str) -> str:
    job = Job.objects.get(tenant_id=cast.tenant.id, kind="transcript.import")
    response = cast.operator.get(cast.url(f"imports/jobs/{job.id}/"), headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def test_a_large_upload_is_read_by_a_job_and_its_page_ends_with_the_report(
    cast: Cast, by_job: Path
) -> None:
    answer = cast.operator.post(cast.url("imports/"), {"file": upload(TRANSCRIPT)})
    assert answer.status_code == 303
    (kept,) = by_job.iterdir()
    assert (kept.stat().st_mode & 0o777, by_job.stat().st_mode & 0o777) == (0o600, 0o700)
    waiting = progress_of(cast, **{"HX-Request": "true"})
    assert "Waiting for a worker" in waiting
    assert 'hx-trigger="every 1s"' in waiting
    assert work_off(cast.tenant.id) == [("transcript.import", "done")]
    ended = progress_of(cast)
    assert "✓ Imported" in ended
    assert "3 items in the file, 2 in the ledger" in ended
    assert "hx-trigger" not in ended
    assert not list(by_job.iterdir())
    row = ImportRow.objects.get(tenant_id=cast.tenant.id)
    assert f"imports/{row.sha256}/" in ended


def test_a_packed_upload_is_left_to_a_job_however_small_it_is(
    cast: Cast, settings: Settings, tmp_path: Path
) -> None:
    settings.CTX_DATA_DIR = tmp_path
    packed = upload(gzip.compress(TRANSCRIPT), "talk.json.gz")
    assert cast.operator.post(cast.url("imports/"), {"file": packed}).status_code == 303
    assert not ImportRow.objects.exists()
    assert work_off(cast.tenant.id) == [("transcript.import", "done")]
    assert "3 items in the file, 2 in the ledger" in progress_of(cast)


def test_a_refused_upload_says_why_may_be_tried_again_and_is_forgotten_in_the_end(
    cast: Cast, by_job: Path
) -> None:
    cast.operator.post(cast.url("imports/"), {"file": upload(b"<html>hello")})
    actor = Actor(cast.tenant.id, "x")
    for _ in range(2):
        assert work_off(cast.tenant.id) == [("transcript.import", "failed")]
        assert "✕ Not imported" in progress_of(cast)
        job = Job.objects.get(tenant_id=cast.tenant.id)
        assert job.error["code"] == "refused"
        retry_job(actor=actor, job_id=job.id)
    (kept,) = by_job.iterdir()
    ask_for_upkeep()
    assert kept.exists()
    long_ago = time.time() - 3 * 24 * 3600
    os.utime(kept, (long_ago, long_ago))
    ask_for_upkeep()
    assert not kept.exists()


def test_a_cancelled_upload_may_be_tried_again(cast: Cast, by_job: Path) -> None:
    cast.operator.post(cast.url("imports/"), {"file": upload(TRANSCRIPT)})
    actor = Actor(cast.tenant.id, "x")
    job = cancel_job(actor=actor, job_id=Job.objects.get(tenant_id=cast.tenant.id).id)
    retry_job(actor=actor, job_id=job.id)
    assert work_off(cast.tenant.id) == [("transcript.import", "done")]
    assert not list(by_job.iterdir())


@pytest.mark.parametrize("rehearse", ["", "1"])
@pytest.mark.parametrize("known", [False, True])
def test_a_worker_that_dies_after_its_commit_leaves_a_job_that_is_done(
    cast: Cast, by_job: Path, monkeypatch: pytest.MonkeyPatch, rehearse: str, known: bool
) -> None:
    if known:
        cast.operator.post(cast.url("imports/"), {"file": upload(TRANSCRIPT)})
        work_off(cast.tenant.id)
    cast.operator.post(cast.url("imports/"), {"file": upload(TRANSCRIPT), "rehearse": rehearse})
    job = Job.objects.get(tenant_id=cast.tenant.id, state=JobState.QUEUED)

    def dies(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_job, "discard", dies)
    with pytest.raises(KeyboardInterrupt):
        run_job(cast.tenant.id, job.id, "first", beats=False)
    job.refresh_from_db()
    assert job.state == JobState.DONE
    assert job.result["status"] == ("unchanged" if known else "imported")
    assert run_job(cast.tenant.id, job.id, "second", beats=False) == "not_due"


def test_a_rehearsal_by_a_job_keeps_nothing(cast: Cast, by_job: Path) -> None:
    cast.operator.post(cast.url("imports/"), {"file": upload(TRANSCRIPT), "rehearse": "1"})
    work_off(cast.tenant.id)
    assert "nothing was kept" in progress_of(cast)
    assert not ImportRow.objects.exists()
    assert not list(by_job.iterdir())


def test_a_worker_that_dies_leaves_nothing_and_the_next_attempt_ends_right(
    cast: Cast, by_job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast.operator.post(cast.url("imports/"), {"file": upload(TRANSCRIPT)})
    before = SessionRow.objects.count()
    job = Job.objects.get(tenant_id=cast.tenant.id)
    whole = import_transcript._write_import

    def dies(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_transcript, "_write_import", dies)
    with pytest.raises(KeyboardInterrupt):
        run_job(cast.tenant.id, job.id, "first", beats=False)
    assert SessionRow.objects.count() == before
    assert len(list(by_job.iterdir())) == 1
    monkeypatch.setattr(import_transcript, "_write_import", whole)
    Job.objects.filter(id=job.id).update(state=JobState.QUEUED, lease_until=None)
    assert work_off(cast.tenant.id) == [("transcript.import", "done")]
    assert SessionRow.objects.count() == before + 1


def test_a_job_that_is_tried_again_after_its_commit_changes_nothing(
    cast: Cast, by_job: Path
) -> None:
    for _ in range(2):
        cast.operator.post(cast.url("imports/"), {"file": upload(TRANSCRIPT)})
    work_off(cast.tenant.id)
    results = Job.objects.filter(tenant_id=cast.tenant.id).values_list("result__status", flat=True)
    assert sorted(results) == ["imported", "unchanged"]
    assert ImportRow.objects.filter(tenant_id=cast.tenant.id).count() == 1


def test_another_tenant_sees_no_progress(cast: Cast, by_job: Path) -> None:
    cast.operator.post(cast.url("imports/"), {"file": upload(TRANSCRIPT)})
    job = Job.objects.get(tenant_id=cast.tenant.id)
    Job.objects.filter(id=job.id).update(tenant_id="00000000-0000-4000-8000-000000000000")
    assert cast.operator.get(cast.url(f"imports/jobs/{job.id}/")).status_code == 404


ORPHAN = json.dumps(
    {
        "messages": [
            {"role": "user", "content": "Go on."},
            {"role": "tool", "tool_call_id": "c9", "content": "<b>lost</b> " + "x" * 600},
            {"role": "assistant", "content": "Done."},
        ],
    }
).encode()


def test_what_was_set_aside_is_shown_escaped_clipped_and_whole_behind_a_link(cast: Cast) -> None:
    answer = cast.operator.post(cast.url("imports/"), {"file": upload(ORPHAN)})
    assert "The text that was set aside" in answer.content.decode()
    row = ImportRow.objects.get(tenant_id=cast.tenant.id)
    place = next(n for n, line in enumerate(row.report, 1) if line.get("raw"))
    page = cast.page(f"imports/{row.sha256}/")
    assert "&lt;b&gt;lost" in page
    assert "<b>lost" not in page
    assert "x" * 500 not in page
    assert f"imports/{row.sha256}/text/{place}/" in page
    whole = cast.page(f"imports/{row.sha256}/text/{place}/")
    assert "x" * 600 in whole
    assert cast.operator.get(cast.url(f"imports/{row.sha256}/text/99/")).status_code == 404


def test_the_first_button_of_the_form_imports(cast: Cast) -> None:
    page = cast.page("imports/")
    assert page.index(">Import</button>") < page.index(">Rehearse</button>")


def test_the_bar_of_an_import_of_many_sessions_never_goes_back(
    cast: Cast, by_job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int]] = []
    told = JobContext.progress

    def listening(context: JobContext, phase: str, percent: int) -> None:
        seen.append((phase, percent))
        told(context, phase, percent)

    monkeypatch.setattr(JobContext, "progress", listening)
    talks = b"\n".join(
        b'{"model":"gpt-4o","messages":[{"role":"user","content":"Hi %d"},{"role":"assistant","content":"Hello"}]}'
        % number
        for number in range(3)
    )
    cast.operator.post(cast.url("imports/"), {"file": upload(talks, "talks.jsonl")})
    assert work_off(cast.tenant.id) == [("transcript.import", "done")]
    percents = [percent for _, percent in seen]
    assert [phase for phase, _ in seen].count("writing") > 1
    assert percents == sorted(percents)
