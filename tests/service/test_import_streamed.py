"""Long files are read line by line: what comes of them, and why not, is what it is for short ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from django.db import DataError

from api.problems import Problem
from api.v1.imports import ImportWrite, SentFile
from ctxengine.ledger.models import Body, Event, ImportRow, SessionRow
from ctxengine.service import import_transcript
from ctxengine.service.import_transcript import ImportOutcome, import_path
from ctxengine.service.imports import source
from ctxengine.service.imports.start_import import start_import
from tests.cast import new_actor
from tests.work_off import work_off

pytestmark = pytest.mark.django_db

LINES = "".join(
    json.dumps(message) + "\n"
    for number in range(4)
    for message in (
        {"role": "user", "content": f"{number} " + "why " * 400},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": f"c{number}", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        ]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "so " * 400},
        {"role": "assistant", "content": "done"},
    )
).encode()  # fmt: skip


def taken(path: Path, data: bytes) -> ImportOutcome:
    path.write_bytes(data)
    return import_path(actor=new_actor(), path=path)


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "STREAMED_FROM", 0)
    monkeypatch.setattr(source, "_CHUNK", 999)
    monkeypatch.setattr(source, "_COLLECTED", 2_000)


@pytest.mark.usefixtures("streamed")
def test_a_file_read_by_lines_becomes_what_it_becomes_whole(tmp_path: Path) -> None:
    packed = gzip.compress(LINES)
    outcomes = [taken(tmp_path / "a.jsonl", LINES), taken(tmp_path / "a.gz", packed)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "STREAMED_FROM", 1 << 40)
        outcomes.append(taken(tmp_path / "a.jsonl", LINES))
    told = [(o.status, o.format, o.items_in, o.items_kept, o.report) for o in outcomes]
    assert told[0] == told[1] == told[2]
    assert told[0][:4] == ("imported", "openai_chat", 16, 16)
    written = [
        [bytes(body.data) for body in Body.objects.filter(session_id=outcome.session_ids[0])]
        for outcome in outcomes
    ]
    assert sorted(written[0]) == sorted(written[1]) == sorted(written[2])


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (gzip.compress(LINES)[:-12], "truncated"),
        (gzip.compress(LINES)[:60] + b"broken" * 9, "damaged"),
        (LINES + b'{"role": "user", "content": "\xff"}\n', f"at byte {len(LINES) + 29:,}"),
        (b'{"hello": "world"}\n' * 300, "no known transcript"),
        (LINES[:500], "cut short"),
    ],
    ids=["empty", "truncated", "damaged", "no text", "no transcript", "cut"],
)
def test_what_cannot_be_read_to_its_end_is_refused_and_nothing_is_written(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    outcome = taken(tmp_path / "x", data)
    assert outcome.status == "refused"
    assert reason in outcome.reason
    for model in (SessionRow, Event, Body, ImportRow):
        assert not model.objects.exists()


@pytest.mark.usefixtures("streamed")
def test_a_file_that_grows_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "live.jsonl"
    whole = source.LongFile.transcript

    def grown(self: source.LongFile, name: str) -> object:
        with path.open("ab") as file:
            file.write(b"\n")
        return whole(self, name)

    monkeypatch.setattr(source.LongFile, "transcript", grown)
    outcome = taken(path, LINES)
    assert (outcome.status, "changed while it was read" in outcome.reason) == ("refused", True)
    assert not SessionRow.objects.exists()


@pytest.mark.parametrize("door", ["rest", "job"])
def test_what_the_database_cannot_keep_is_refused_at_every_door_without_its_text(
    monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    def refuses(*_: object) -> None:
        raise DataError("value too long: the file's own text")

    monkeypatch.setattr(import_transcript, "_write_import", refuses)
    actor = new_actor()
    if door == "rest":
        with pytest.raises(Problem) as refused:
            ImportWrite().perform(actor, SentFile("a.jsonl", LINES), {})
        reason = str(refused.value.detail)
    else:
        job = start_import(actor=actor, name="a.jsonl", chunks=[LINES])
        work_off(actor.tenant_id)
        job.refresh_from_db()
        assert job.state == "failed"
        reason = json.dumps([job.error, job.result])
    assert "cannot keep" in reason and "own text" not in reason
    for model in (SessionRow, Event, Body, ImportRow):
        assert not model.objects.exists()
