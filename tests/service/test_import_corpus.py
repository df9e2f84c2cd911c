"""Real transcripts become sessions: items add up, requests prove and are valid for every API, twice is once."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from ctxengine.engine.importers.registry import FORMATS
from ctxengine.ledger.models import Event, ItemRow, RequestRow, RunRow, SessionRow
from ctxengine.service.import_transcript import ImportOutcome, import_file
from ctxengine.service.prove import replay_row
from ctxengine.service.verify import verify_chains
from tests.cast import new_actor
from tests.corpus import transcripts
from tests.rewire import broken_rules

pytestmark = [pytest.mark.corpus, pytest.mark.django_db]

LARGE = 500_000
"""Bytes from which a file's sessions are looked at by sample."""
PROVEN_ALL = 60
"""Requests up to which all of a session are proven; of more, this many, evenly spread."""
IN_THE_CORPUS = sorted(set(FORMATS) - {"otel_genai", "cline_history"})
SAME_AS_ANOTHER = {"fncall-llm-message.json": "openai_chat"}
"""Files that hold nothing of the tool that wrote them."""
REFUSED = {
    "log_tool_call_error.json": "no message that can be read",
    "log_with_nan.txt": "holds no samples",
}
"""Files that are broken or empty on purpose, and words of the reason."""


@pytest.mark.parametrize("format", IN_THE_CORPUS)
def test_every_file_of_a_format_becomes_sessions_that_prove_or_is_refused_by_name(
    corpus_folder: Path, format: str
) -> None:
    actor = new_actor()
    for path in transcripts(corpus_folder, format):
        data = path.read_bytes()
        outcome = import_file(actor=actor, name=path.name, data=data)
        if path.name in REFUSED:
            assert outcome.status == "refused"
            assert outcome.reason.startswith(path.name) and REFUSED[path.name] in outcome.reason
            assert not SessionRow.objects.filter(import_sha256=outcome.sha256).exists()
            continue
        assert outcome.status == "imported", (path.name, outcome.reason)
        assert outcome.format == SAME_AS_ANOTHER.get(path.name, format)
        assert_items_add_up(outcome)
        again = import_file(actor=actor, name="another name", data=data)
        assert again.status == "unchanged"
        assert again.session_ids == outcome.session_ids
        assert SessionRow.objects.filter(import_sha256=outcome.sha256).count() == len(
            outcome.session_ids
        )
        assert_sessions_hold(outcome.session_ids[:: 12 if len(data) > LARGE else 1])


def assert_items_add_up(outcome: ImportOutcome) -> None:
    assert outcome.items_in == outcome.items_kept + outcome.items_set_aside > 0
    assert outcome.items_set_aside == sum(line["items"] for line in outcome.report)
    in_ledger = ItemRow.objects.filter(session_id__in=outcome.session_ids).count()
    made_up = Event.objects.filter(
        session_id__in=outcome.session_ids, payload__synthetic=True
    ).count()
    assert in_ledger == outcome.items_kept + made_up


def assert_sessions_hold(sessions: list[UUID]) -> None:
    for session_id in sessions:
        (report,) = verify_chains(session_id=session_id)
        assert report.problem is None
        session = SessionRow.objects.get(id=session_id)
        rows = list(RequestRow.objects.filter(session_id=session_id).order_by("number"))
        assert all(row.reconstructed for row in rows)
        assert not RunRow.objects.filter(session_id=session_id).exclude(state="ended").exists()
        for row in rows[:: 1 + len(rows) // PROVEN_ALL]:
            replay = replay_row(session, row)
            assert replay.verdict == "identical", (session.title, row.number, replay)
        for row in {row.id: row for row in (*rows[:1], *rows[len(rows) // 2 :][:1], *rows[-1:])}.values():  # fmt: skip
            assert broken_rules(session, row) == []
