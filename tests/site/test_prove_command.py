"""`manage.py prove_requests`: says how far it is, and reads a session once without trusting anything."""

from __future__ import annotations

import io
from unittest.mock import patch

import pytest
from django.core.management import call_command

from ctxengine.ledger.models import Body, Event
from ctxengine.service import samples
from ctxengine.service.bootstrap import ensure_demo
from ctxengine.service.prove import count_requests, prove_all, replay_request
from ctxengine.site.management.commands import prove_requests
from tests.cast import Call, Runtime

pytestmark = pytest.mark.django_db


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def talked(turns: int = 3) -> Runtime:
    runtime = Runtime()
    for turn in range(turns):
        runtime.ask(f"Question {turn}")
        runtime.assemble()
        runtime.say("", Call(f"c{turn}", "read"))
        runtime.results((f"c{turn}", f"page {turn}"))
        runtime.assemble()
        runtime.say("Done.")
    return runtime


def proving(err: io.StringIO, *, after_s: float) -> str:
    out = io.StringIO()
    with (
        patch.object(prove_requests, "_REWRITTEN_AFTER_S", after_s),
        patch.object(prove_requests, "_TOLD_AFTER_S", after_s),
    ):
        call_command("prove_requests", "--all", stdout=out, stderr=err)
    return out.getvalue()


def test_progress_rewrites_a_terminals_line_and_leaves_it_empty() -> None:
    talked()
    err = Terminal()
    assert proving(err, after_s=0.0) == "6 requests: 6 identical\n"
    told = err.getvalue()
    assert "\r1 of 6 requests, 0 different" in told
    assert "\n" not in told
    assert told.endswith("\r\x1b[K")


def test_progress_is_whole_lines_elsewhere_and_none_where_it_is_quick() -> None:
    talked()
    err = io.StringIO()
    proving(err, after_s=0.0)
    assert err.getvalue().splitlines()[:2] == [
        "1 of 6 requests, 0 different",
        "2 of 6 requests, 0 different",
    ]
    quick = io.StringIO()
    proving(quick, after_s=600.0)
    assert quick.getvalue() == ""


def test_sessions_proven_in_a_row_get_the_verdicts_of_each_request_alone() -> None:
    runtimes = [talked(), talked(2)]
    gone = Event.objects.filter(session_id=runtimes[0].session, type="tool.result.received").first()
    assert gone is not None
    assert gone.body_id is not None
    Body.objects.filter(id=gone.body_id).update(data=b"page 9")
    together = {found.request_id: found.verdict for found in prove_all()}
    alone = {
        row.id: replay_request(actor=runtime.actor, request_id=row.id).verdict
        for runtime in runtimes
        for row in runtime.requests
    }
    assert together == alone
    assert set(together.values()) == {"identical", "different"}
    assert count_requests() == len(together) == 10


def test_a_session_is_read_again_for_the_next_proof() -> None:
    runtime = talked()
    assert {found.verdict for found in prove_all(session_id=runtime.session)} == {"identical"}
    Body.objects.filter(session_id=runtime.session, owner="").update(data=b"changed")
    found = list(prove_all(session_id=runtime.session))
    assert {proof.verdict for proof in found} == {"different"}
    assert not any("changed" in (proof.first_difference or "") for proof in found)


def test_samples_are_missing_until_they_are_loaded() -> None:
    ensure_demo(username="admin", password="correct horse battery", api_key="ctx_" + "k" * 43)
    assert samples.samples_missing()
    samples.load_samples()
    assert not samples.samples_missing()
