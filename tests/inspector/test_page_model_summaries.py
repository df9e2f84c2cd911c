"""P8 where a model writes: who wrote, what it cost, what is at work, why there is none, and the price beforehand."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.ledger.models import Job, Tenant
from ctxengine.service.specs import Actor
from tests.inspector.conftest import Cast
from tests.summing import Summing, provider_of, told
from tests.telling import FIRST, KIND, NEXT, Telling


@pytest.fixture
def summing(cast: Cast) -> Summing:
    """A session of the cast's tenant."""
    tenant = Tenant.objects.get(slug=cast.slug)
    return Summing(actor=Actor(tenant.id, "system"))


def test_a_summary_says_who_wrote_it_from_what_and_for_how_much(
    cast: Cast, summing: Summing, settings: Any
) -> None:
    address = f"sessions/{summing.session}/compactions/"
    with provider_of(settings, told()):
        job = summing.press()
        waiting = cast.page(address)
        assert "A model sums up events 1 to" in waiting
        assert "waiting for a worker" in waiting
        assert f"/jobs/{job.id}/" in waiting
        summing.work()
    page = cast.page(address)
    assert "A model sums up" not in page
    for text in (
        "anthropic/claude-haiku-5-5",
        "cheapest, told by summary@1",
        "1 part, window 1,000,000",
        "the session's is 9,000",
        "1 call,",
        "tokens in",
        f"/jobs/{job.id}/",
    ):
        assert text.replace("'", "&#x27;") in page or text in page, text
    rows = cast.viewer.get(cast.url(f"sessions/{summing.session}/compactions.csv"))
    header, line = b"".join(rows).decode().splitlines()
    assert header.endswith("source_sha256,calls,fragments,usd")
    assert ",1,1,0.00" in line


def test_a_refusal_names_the_model_the_code_and_the_job(
    cast: Cast, summing: Summing, settings: Any
) -> None:
    with provider_of(settings, told(" ")):
        job = summing.press()
        summing.work()
    page = cast.page(f"sessions/{summing.session}/compactions/")
    refused = page[page.index("<h2>Refused</h2>") :]
    assert "anthropic/claude-haiku-5-5" in refused
    assert f"/jobs/{job.id}/" in refused


def test_a_models_summary_by_hand_says_what_it_costs_before_it_is_asked_for(
    cast: Cast, summing: Summing, settings: Any
) -> None:
    summing.talk(2)
    address = cast.url(
        f"sessions/{summing.session}/compactions/new/?model=1&through={summing.row.content_sequence}"
    )
    settings.CTX_PROVIDER_KEYS = {}
    refused = cast.operator.get(address).content.decode()
    assert "anthropic/claude-haiku-5-5 (no_key). Set its key, or name another model." in refused
    with provider_of(settings, told()):
        preview = cast.operator.get(address).content.decode()
        for text in ("Written by", "anthropic/claude-haiku-5-5", "The call costs", "about;"):
            assert text in preview, text
        assert not Job.objects.filter(session_id=summing.session)
        done = cast.operator.post(
            cast.url(f"sessions/{summing.session}/compactions/new/"),
            {"model": "1", "through": str(summing.row.content_sequence), "reason": "Too long."},
        )
        assert done.status_code == 303
        assert "done=queued" in done["Location"]
        assert summing.work() == [("compaction.summary", "done")]
    page = cast.operator.get(done["Location"]).content.decode()
    assert "A job lets a model write the summary" in page
    assert "Too long." in page


def test_packets_say_who_wrote_them_ahead_of_which_plan_and_for_how_much(
    cast: Cast, settings: Any
) -> None:
    tenant = Tenant.objects.get(slug=cast.slug)
    telling = Telling(actor=Actor(tenant.id, "system"))
    address = f"sessions/{telling.session}/compactions/"
    with provider_of(settings, told()):
        telling.go_on(FIRST)
        assert "A model sums up turns 1 to 24" in cast.page(address)
        assert telling.work() == [(KIND, "done")]
        written = telling.packets[-1].sequence
        covered = cast.page(address).partition("What covers history")[2].partition("</ol>")[0]
        assert "at=" in covered and f"at={written}#" not in covered
        page = cast.page(f"{address}?at={written}")
        for text in ("a job, ahead of the plan", "told by packet@1", "1 call,", "1 part, window"):
            assert text in page, text
        telling.over()
        telling.go_on(NEXT - 1)
    turns = cast.page(f"sessions/{telling.session}/turns/")
    assert "over turns 1 to 24, in force" in turns
    assert "written by anthropic/claude-haiku-5-5" in turns


def test_a_packet_that_came_too_late_is_shown_in_reserve(cast: Cast, settings: Any) -> None:
    tenant = Tenant.objects.get(slug=cast.slug)
    telling = Telling(actor=Actor(tenant.id, "system"))
    with provider_of(settings, told(), told()):
        telling.go_on(FIRST)
        telling.over()
        telling.go_on(NEXT - 1)
        telling.work()
    page = cast.page(f"sessions/{telling.session}/compactions/")
    assert "in reserve</span><small>another over the same turns came first" in page
    turns = cast.page(f"sessions/{telling.session}/turns/")
    assert turns.count("over turns 1 to 24") == 1
    address = cast.url(f"sessions/{telling.session}/compactions/new/")
    with provider_of(settings, told()):
        preview = cast.operator.get(address, {"model": "1"}).content.decode()
        assert "Written by" in preview and "The packet of the closed turns" in preview
        assert "merge the summaries" not in preview and "low water" not in preview
        done = cast.operator.post(address, {"model": "1", "reason": "It tells too little."})
        assert "done=queued" in done["Location"]
        telling.work()
    assert telling.packets[-1].run_id is None
    again = cast.operator.get(address, {"model": "1"}).content.decode()
    assert "There is nothing to make" in again and "a model wrote it" in again
