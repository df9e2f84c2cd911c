"""Gate: request replay. Every recorded request rebuilds to its hash, also in another process with another hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connections

from ctxengine.ledger.models import Body, RequestRow
from ctxengine.service.end_run import end_run
from ctxengine.service.import_transcript import import_file
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import EndRun, MemoryLine, PolicySpec
from tests.cast import PROVIDERS, Call, Runtime, new_actor
from tests.corpus import FORMATS, transcripts

pytestmark = pytest.mark.gate

ROOT = Path(__file__).resolve().parents[2]
THOUGHT = '{"type":"thinking","thinking":"hm","signature":"SIG=="}'


def prove(*arguments: str) -> dict[str, object]:
    """What `prove_requests --json` says."""
    out = StringIO()
    try:
        call_command("prove_requests", *arguments, "--json", stdout=out)
    except SystemExit as end:
        assert end.code == 1
    report: dict[str, object] = json.loads(out.getvalue())
    return report


def busy(provider: str) -> Runtime:
    """Tools, memory, refusals, parallel results out of order, an interrupted run, pressure."""
    runtime = Runtime(
        provider=provider, window=9_000, policy=PolicySpec(reserve=800, history_floor=400)
    )
    for turn in range(6):
        runtime.ask(f"Question {turn}", timezone="Asia/Tokyo")
        runtime.assemble(recall=(MemoryLine(id="m", text="Seen \ud83d before."),))
        runtime.say("Both.", Call(f"a{turn}", "read"), Call(f"b{turn}", "web_fetch"))
        runtime.results((f"b{turn}", f"page {turn} \x00\n" * 80))
        runtime.results((f"a{turn}", ""), is_error=True)
        runtime.assemble(knowledge=(MemoryLine(text="A passage."),))
        runtime.say("", Call(f"n{turn}", "nobody"))
        runtime.assemble()
        runtime.say("Done.")
    runtime.ask("And now?")
    runtime.assemble()
    runtime.say("", Call("last", "read"))
    end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="interrupted"))
    return runtime


@pytest.mark.django_db
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_request_of_a_busy_session_replays(provider: str) -> None:
    runtime = busy(provider)
    runtime.turn("After all that?", "Yes.")
    replays = [replay_request(actor=runtime.actor, request_id=row.id) for row in runtime.requests]
    assert {replay.verdict for replay in replays} == {"identical"}
    assert all(replay.recorded_sha256 == replay.rebuilt_sha256 for replay in replays)
    assert prove("--session", str(runtime.session)) == {
        "requests": len(replays),
        "verdicts": {"identical": len(replays)},
        "different": [],
    }


@pytest.mark.django_db
def test_a_changed_body_is_told_as_a_difference_and_ends_non_zero() -> None:
    runtime = Runtime()
    runtime.turn("One", "1")
    runtime.turn("Two", "2")
    (body,) = [row for row in Body.objects.filter(session_id=runtime.session) if bytes(row.data) == b"One"]  # fmt: skip
    Body.objects.filter(session_id=runtime.session, id=body.id).update(data=b"Eno")
    report = prove("--all")
    assert report["verdicts"] == {"different": 2}
    with pytest.raises(SystemExit):
        call_command("prove_requests", "--all", stdout=StringIO())


@pytest.mark.django_db
def test_a_request_of_a_retired_builder_is_no_difference() -> None:
    runtime = Runtime()
    runtime.turn("One", "1")
    (row,) = runtime.requests
    inputs = row.inputs | {"builder": "builder@0"}
    RequestRow.objects.filter(session_id=runtime.session).update(inputs=inputs)
    assert replay_request(actor=runtime.actor, request_id=row.id).verdict == "retired_builder"
    assert prove("--all")["different"] == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("builder", "verdict"),
    [("builder@1", "retired_builder"), ("builder@2", "retired_builder"), (None, "different")],
)
def test_other_bytes_than_an_older_builder_rendered_are_no_difference(
    builder: str | None, verdict: str
) -> None:
    runtime = Runtime()
    runtime.turn("One", "1")
    runtime.turn("Two", "2")
    first, second = runtime.requests
    older = {"builder": builder} if builder else {}
    for row, sha256 in ((first, first.request_sha256), (second, "0" * 64)):
        RequestRow.objects.filter(id=row.id).update(
            inputs=row.inputs | older, request_sha256=sha256
        )
    told = [replay_request(actor=runtime.actor, request_id=row.id) for row in (first, second)]
    assert [replay.verdict for replay in told] == ["identical", verdict]
    assert told[1].first_difference == "hashes differ"


@pytest.mark.django_db(transaction=True)
def test_another_process_with_another_hash_seed_proves_everything(
    request: pytest.FixtureRequest,
) -> None:
    thinker = Runtime()
    thinker.ask("Go.")
    thinker.assemble()
    thinker.say("", Call("t1", "read"), reasoning=[THOUGHT])
    thinker.results(("t1", "ok"))
    thinker.assemble()
    sessions = [busy(provider) for provider in PROVIDERS]
    import_small_files(request)
    total = RequestRow.objects.count()
    assert total >= 3 * len(sessions[0].requests)
    report = proven_elsewhere("4242")
    assert report["requests"] == total
    assert report["different"] == []
    assert report["verdicts"] == {"identical": total}


def import_small_files(request: pytest.FixtureRequest) -> None:
    """The smallest file of each format, where the corpus lies beside the repository."""
    try:
        folder = request.getfixturevalue("corpus_folder")
    except pytest.skip.Exception:
        return
    actor = new_actor()
    for format in FORMATS:
        path = min(transcripts(folder, format), key=lambda file: file.stat().st_size)
        assert import_file(actor=actor, name=path.name, data=path.read_bytes()).status == "imported"


def proven_elsewhere(seed: str) -> dict[str, object]:
    """`prove_requests --all` in a process of its own, on this test's database."""
    given = connections["default"].settings_dict
    address = (
        f"postgresql://{given['USER']}:{given['PASSWORD']}@/{given['NAME']}?host={given['HOST']}"
    )
    if given["PORT"]:
        address += f"&port={given['PORT']}"
    from django.conf import settings

    environment = os.environ | {
        "PYTHONHASHSEED": seed,
        "DATABASE_URL": address,
        "DJANGO_SETTINGS_MODULE": "ctxengine.site.settings",
        "CTX_FIELD_KEY": field_key(settings.CTX_FIELD_KEY),
    }
    command = [sys.executable, "manage.py", "prove_requests", "--all", "--json"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr + done.stdout
    report: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
    return report


def field_key(key: bytes | str) -> str:
    return key.decode() if isinstance(key, bytes) else key
