"""Checkpoints of a boundary session: what each covers, what failed and how to mend it, and the way back."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.providers.strict_local.script import Reply
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.summaries.ask import AnswerLater
from tests.cast import Runtime
from tests.inspector.conftest import Cast
from tests.service.boundary.talking import session, strict_provider
from tests.work_off import work_off


def until_due(cast: Cast, provider: str) -> Runtime:
    """A session of the cast's tenant whose next request needs a compaction."""
    runtime = session(provider, window=9_000, actor=Actor(cast.tenant.id, "system"))
    for number in range(60):
        runtime.ask(f"Item {number}: " + "it is as long as it is " * 40)
        try:
            runtime.assemble()
        except AnswerLater:
            return runtime
        runtime.say("Remembered, with all of its words. " * 30)
    raise AssertionError("never due")


@pytest.mark.parametrize(
    ("provider", "words"), [("anthropic", "native window"), ("openai", "portable note")]
)
def test_a_checkpoint_says_what_it_covers_and_can_be_undone(
    cast: Cast, settings: Any, provider: str, words: str
) -> None:
    with strict_provider(settings) as strict:
        runtime = until_due(cast, provider)
        strict.provider.script.add([Reply(text="Objective: <b>items</b>. Remaining work: all.")])
        work_off(runtime.actor.tenant_id, kind="compaction.boundary")
    (made,) = runtime.events(EventType.COMPACTED)
    page = cast.page(f"sessions/{runtime.session}/checkpoints/")
    for text in (words, "● in force", "✓ completed", made.payload["source_sha256"], "Undo…"):
        assert text in page, text
    assert "<b>items" not in page and "encrypted_content" not in page and "signature" not in page
    lit = cast.page(f"sessions/{runtime.session}/checkpoints/", done="undone", size="200")
    assert f'href="?size=200&amp;at={made.sequence}#detail"' in lit
    assert "under Checkpoints" in cast.page(f"sessions/{runtime.session}/compactions/")
    (line,) = cast.data(f"sessions/{runtime.session}/checkpoints.json")
    assert line["tokens_after"] < line["tokens_before"]
    assert (line["note"] is None) == (provider == "anthropic")
    address = cast.url(f"sessions/{runtime.session}/checkpoints/{made.sequence}/undo/")
    assert "Comes back" in cast.operator.get(address).content.decode()
    assert cast.viewer.post(address, {"reason": "No."}).status_code == 403
    done = cast.operator.post(address, {"reason": "It lost the thread."})
    assert done.status_code in {302, 303}
    assert "↩ undone" in cast.page(f"sessions/{runtime.session}/checkpoints/")


def test_a_failure_stands_there_with_its_remedy(cast: Cast, settings: Any) -> None:
    with strict_provider(settings) as strict:
        runtime = until_due(cast, "anthropic")
        strict.provider.script.add([Reply(status=529)])
        work_off(runtime.actor.tenant_id, kind="compaction.boundary")
        with pytest.raises(ServiceError):
            runtime.assemble()
    page = cast.page(f"sessions/{runtime.session}/checkpoints/")
    for text in ("✕ failed", "compaction_unavailable", "No checkpoint"):
        assert text in page, text


def test_sessions_of_other_engines_have_no_such_tab(cast: Cast) -> None:
    assert "Checkpoints" not in cast.page(f"sessions/{cast.session.id}/compactions/")
