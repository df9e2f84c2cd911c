"""Into the ledger, out as another tool's file, and in again: the same items stand there (issue 3)."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple
from uuid import UUID

import pytest

from ctxengine.ledger.models import ItemRow
from ctxengine.service.export_session import ExportedSession, export_session
from ctxengine.service.import_transcript import import_file
from ctxengine.service.specs import Actor
from tests.cast import new_actor

pytestmark = pytest.mark.django_db

CHAT, MESSAGES = "support_agent.openai_chat.json", "research_agent.anthropic_messages.json"
CODE, ROLLOUT = "coding_agent.claude_code.jsonl", "migration_agent.codex_rollout.jsonl"


class Stood(NamedTuple):
    """What the ledger says of an item: its place is that in the list, its digest is over call id, arguments and parts."""

    kind: str
    name: str
    is_error: bool
    digest: str
    trust: str


def stood(sessions: list[UUID]) -> list[Stood]:
    rows = ItemRow.objects.filter(session_id__in=sessions).order_by("sequence", "ordinal")
    return [Stood(*row) for row in rows.values_list(*Stood._fields)]


def imported(actor: Actor, data: bytes) -> list[UUID]:
    outcome = import_file(actor=actor, name="session", data=data)
    assert outcome.status == "imported", outcome.reason
    return outcome.session_ids


def journeys(
    sample: str, format: str, times: int
) -> list[tuple[list[Stood], ExportedSession, list[Stood]]]:
    """Every session of a sample, out and in again so many times: its items, the last export, its items at the end."""
    actor, found = new_actor(), []
    for first in imported(
        actor, files("ctxengine.service.sample_data").joinpath(sample).read_bytes()
    ):
        owner, session = actor, first
        outs = []
        for _ in range(times):
            outs.append(export_session(actor=owner, session_id=session, format=format, raw=True))
            owner = new_actor()
            (session,) = imported(owner, outs[-1].text.encode())
        found.append((stood([first]), outs[-1], stood([session])))
    return found


@pytest.mark.parametrize(
    ("sample", "format", "written"),
    [
        (CHAT, "", "openai_chat"),
        (MESSAGES, "", "anthropic_messages"),
        (CHAT, "anthropic_messages", "anthropic_messages"),
        (CHAT, "otel_genai", "otel_genai"),
        (MESSAGES, "otel_genai", "otel_genai"),
    ],
)
def test_a_session_comes_back_from_its_own_family_and_from_spans_item_by_item(
    sample: str, format: str, written: str
) -> None:
    # The second time round a file of the exporter's own is what is read and written.
    for before, out, after in journeys(sample, format, times=2):
        assert (out.format, out.left_out) == (written, ())
        assert before
        assert after == before


@pytest.mark.parametrize("sample", [CODE, ROLLOUT])
def test_of_a_harness_session_spans_lose_what_the_report_says_and_no_item(sample: str) -> None:
    for before, out, after in journeys(sample, "otel_genai", times=1):
        lost = {line.code: line.items for line in out.left_out}
        assert lost.keys() <= {"note_as_user", "repaired_result"}
        assert [item[:-1] for item in after] == [item[:-1] for item in before]
        trusted = [one for one, other in zip(after, before, strict=True) if one != other]
        assert len(trusted) == lost.get("note_as_user", 0)
        assert {item.trust for item in trusted} <= {"USER"}
