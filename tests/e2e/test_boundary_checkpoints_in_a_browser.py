"""Checkpoints in a browser: a window, a note, a failure and a recovery are told apart, and an operator takes one back."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ctxengine.engine.events import EventType
from ctxengine.providers.strict_local.script import Reply
from ctxengine.service.compact import compact
from ctxengine.service.end_run import end_run
from ctxengine.service.specs import Actor, Compact, EndRun
from ctxengine.service.summaries.ask import AnswerLater
from tests.cast import Runtime
from tests.e2e.desk import Desk
from tests.service.boundary.talking import session, strict_provider
from tests.work_off import work_off

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

KIND = "compaction.boundary"
NOTE = "Objective: compare the sheets. Decisions: the north stands. Remaining work: the south."
SHEET = "the sheets of the depots are compared part by part and "


def compacted(
    desk: Desk,
    settings: Any,
    provider: str,
    *,
    turns: int = 6,
    fails: tuple[Reply, ...] = (),
    **policy: Any,
) -> Runtime:
    """A session with what came of its compactions: those that fail, then one that goes well."""
    with strict_provider(settings) as strict:
        actor = Actor(desk.tenant.id, "system")
        runtime = session(provider, window=9_000, actor=actor, **policy)
        for number in range(turns):
            runtime.ask(f"Sheet {number}: " + SHEET * 70)
            end_run(actor=actor, run_id=runtime.run, spec=EndRun(outcome="completed"))
        runtime.ask("Which limits stand?")
        strict.provider.script.add([*fails, Reply(text=NOTE, plain=True)])
        with pytest.raises(AnswerLater):
            runtime.assemble()
        for _ in fails:
            work_off(actor.tenant_id, kind=KIND)
            compact(actor=actor, session_id=runtime.session, spec=Compact())
        work_off(actor.tenant_id, kind=KIND)
        runtime.assemble()
        runtime.say("Those of the north.")
    return runtime


def opened(desk: Desk, runtime: Runtime) -> Page:
    return desk.open(f"sessions/{runtime.session}/checkpoints/")


def test_windows_notes_failures_and_recoveries_are_told_apart_and_one_is_taken_back(
    desk: Desk, settings: Any
) -> None:
    recovered = compacted(desk, settings, "anthropic", turns=24, archive_recovery=True)
    page = opened(desk, recovered)
    expect(page.locator("table.list").first).to_contain_text("from a bounded view of the archive")
    (made,) = recovered.events(EventType.COMPACTED)
    first, last = made.payload["left_out"][0]
    expect(page.locator("#detail .notice")).to_contain_text(f"events {first} to {last}")
    expect(page.locator("#detail .notice")).to_contain_text("neither shown nor summarised")

    page = opened(desk, compacted(desk, settings, "openai"))
    expect(page.get_by_role("group", name="Note")).to_contain_text("Remaining work: the south.")
    expect(page.locator("table.list").first).to_contain_text("portable note")

    fails = (Reply(status=529), Reply(status=401))
    failed = compacted(desk, settings, "anthropic", fails=fails)
    page = opened(desk, failed)
    row = page.locator("table.list").first.locator("tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("native window")
    expect(row).to_contain_text("● in force")
    ended = page.get_by_role("group", name="Operations").locator("tbody tr")
    expect(ended).to_have_count(3)
    expect(ended.nth(0)).to_contain_text("✓ completed")
    expect(ended.nth(1)).to_contain_text("compact by hand")
    expect(ended.nth(2)).to_contain_text("may be tried again")
    page.get_by_role("link", name="Undo…").click()
    page.get_by_label("Reason").fill("It lost the limits of the south.")
    page.get_by_role("button", name="Undo checkpoint").click()
    expect(page.get_by_role("status").first).to_contain_text("The checkpoint is undone")
    expect(row).to_contain_text("↩ undone")
    expect(page.get_by_role("link", name="Undo…")).to_have_count(0)
    assert len(failed.events(EventType.COMPACTION_UNDONE)) == 1
