"""A request that stands on a checkpoint: every item has one form and one size, and all views give the same sums."""

from __future__ import annotations

import csv
from typing import Any
from uuid import UUID

import pytest

from ctxengine.engine.events import EventType
from ctxengine.providers.strict_local.script import Reply
from ctxengine.service.specs import Actor
from inspector.pages import request_items
from tests.cast import Call, Runtime
from tests.inspector.conftest import Cast
from tests.inspector.test_page_checkpoints import until_due
from tests.service.boundary.talking import strict_provider
from tests.work_off import work_off

NOTE = "Objective: sort. Corrections: none. Decisions: none. Evidence: none. Remaining work: all."
CONVERSATION = {"10", "15"}


def on_a_checkpoint(cast: Cast, settings: Any, provider: str) -> tuple[Runtime, int]:
    """A session with a request right behind its checkpoint, and the checkpoint's event."""
    with strict_provider(settings) as strict:
        runtime = until_due(cast, provider)
        strict.provider.script.add([Reply(text=NOTE, plain=True)])
        work_off(runtime.actor.tenant_id, kind="compaction.boundary")
        runtime.assemble()
    (made,) = runtime.events(EventType.COMPACTED)
    return runtime, made.sequence


def items(cast: Cast, request: UUID, **query: str) -> list[dict[str, str]]:
    answer = cast.operator.get(cast.url(f"requests/{request}/items.csv"), query)
    return list(csv.DictReader(answer.getvalue().decode().splitlines()))


@pytest.mark.parametrize(
    ("provider", "what"),
    [("anthropic", "the provider&#x27;s own window"), ("openai", "a continuation note")],
)
def test_every_item_has_one_form_and_the_sums_agree(
    cast: Cast, settings: Any, provider: str, what: str
) -> None:
    runtime, event = on_a_checkpoint(cast, settings, provider)
    request = runtime.requests[-1]
    shown, out = items(cast, request.id), items(cast, request.id, form="out")
    assert {item["form"] for item in shown} == {"whole"}
    assert not {item["item"] for item in shown} & {item["item"] for item in out}
    told = cast.data(f"requests/{request.id}.json")["frame"]["request"]["manifest"]
    rows = {row["row"]: row["tokens"] for row in told["rows"]}
    assert sum(int(item["tokens"]) for item in shown) == rows[10] + rows[15]
    spans = [span for span in told["spans"] if span["form"] == "out"]
    assert len(out) == sum(span["units"] for span in spans)
    assert sum(int(item["tokens"]) for item in out) == sum(span["tokens"] for span in spans)
    assert told["cut"]["left_out_units"] == len(out)
    # What a checkpoint stands for is listed as what it is, where somebody asks what row 9 is about.
    assert {item["form"] for item in items(cast, request.id, row="9")} == {"out"}

    page = cast.page(f"requests/{request.id}/")
    for text in (f"{what} for events 1 to", f"checkpoint {event}", "Shown again behind it: 1 unit"):
        assert text in page, text
    for text in ("by provider 1", "History cut", "Cut floor"):
        assert text not in page, text


def test_the_change_names_the_checkpoint_and_undoing_it_too(cast: Cast, settings: Any) -> None:
    runtime, event = on_a_checkpoint(cast, settings, "openai")
    before, after = runtime.requests[-2:]
    page = cast.page(f"requests/{after.id}/change/")
    assert "A new checkpoint, a portable note, stands for events 1 to" in page
    assert f"?at={event}#e-{event}" in page and "History cut" not in page
    back = cast.data(f"requests/{after.id}/diff/{before.id}.json")
    assert back["comparison"]["cause"] == "checkpoint"
    assert "no longer stands: the whole history stands" in back["comparison"]["detail"]


def test_tool_results_over_their_own_cap_are_flagged(cast: Cast, settings: Any) -> None:
    runtime, _ = on_a_checkpoint(cast, settings, "anthropic")
    assert "over it" not in cast.page(f"requests/{runtime.requests[-1].id}/")
    runtime.say("", Call("toolu_1", "read"))
    runtime.results(("toolu_1", "A line of the sheet. " * 300))
    with strict_provider(settings):
        runtime.assemble()
    request = runtime.requests[-1]
    budget = request.budget
    over = budget["tool_results"] - budget["tool_results_cap"]
    assert over > 0
    page = cast.page(f"requests/{request.id}/")
    assert f"{over:,} over it: this engine shortens nothing settled" in page
    assert f"▲ {budget['tool_results']:,}" in page


def test_a_result_over_its_own_limit_is_told_from_what_is_whole(cast: Cast) -> None:
    """It stands as both ends of it; nothing but its form says so."""
    runtime = Runtime(actor=Actor(cast.tenant.id, "system"))
    runtime.ask("And the long one?")
    runtime.look("toolu_1", "A line of the sheet. " * 2_000)
    request = runtime.assemble().request_id
    found = items(cast, request)
    (long,) = [item for item in found if int(item["bytes"]) > 30_000]
    assert long["form"] == "excerpt"
    assert "over the 30,000 bytes that one result may take" in long["reason"]
    assert items(cast, request, form="excerpt") == [long]
    assert len(items(cast, request, form="whole")) + 1 == len(found)


def test_a_form_is_asked_of_all_items_and_not_of_the_newest_alone(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime(actor=Actor(cast.tenant.id, "system"))
    runtime.ask("And the long one?")
    runtime.look("toolu_1", "A line of the sheet. " * 2_000)
    runtime.look("toolu_2", "A short one.")
    request = runtime.assemble().request_id
    every = items(cast, request)
    monkeypatch.setattr(request_items, "WINDOW", 1)
    for form in ("excerpt", "whole"):
        newest = [item["item"] for item in every if item["form"] == form][-1]
        assert f'id="i-{newest}"' in cast.page(f"requests/{request}/items/", form=form)
    # This engine has no windows, so that no older page has one.
    page = cast.page(f"requests/{request}/items/", form="window")
    assert "No item matches." in page and "Older items" not in page


def test_an_empty_window_with_older_items_behind_it_does_not_say_that_none_matches(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_items, "_items", lambda *given: ((), "3.0"))
    page = cast.page(f"requests/{cast.session.requests[-1]}/items/")
    assert "None among these; older ones may match." in page and "below=3.0" in page
    assert "No item matches." not in page
