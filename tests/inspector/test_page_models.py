"""P11: models: what is declared, what was measured, and a probe that is watched while it climbs."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from ctxengine.engine.capacity.profile import (
    LADDER_VERSION,
    CapacityProfile,
    Grade,
    Horizon,
    Observation,
    Provenance,
    metadata_profile,
)
from ctxengine.ledger.models import AuditEntry, CapacityRow, Job
from ctxengine.service.probe.profiles import keep_profile
from inspector.ladder_plot import ladder_plot
from tests.inspector.conftest import Cast

KEY = "openai/strict/horizon-8000"


def measured() -> CapacityProfile:
    samples = [
        Observation(tokens=size, actual_tokens=size + 90, grade=grade, latency_ms=40 + size // 100)
        for size, grade in [(4_000, Grade.STRICT)] * 3
        + [(8_000, Grade.LOOSE)] * 2
        + [(16_000, Grade.FAIL)] * 2
    ]
    base = metadata_profile(
        provider="openai", model="strict/horizon-8000", declared_window=128_000, max_output=4_096
    )
    made = Provenance(
        source="probe",
        probed_at="2026-03-01T12:00:00+00:00",
        ladder=LADDER_VERSION,
        observations=tuple(samples),
    )
    horizon = Horizon(tokens=8_090, confidence=0.71, confirmed_at="2026-03-01T12:00:00+00:00")
    return base.model_copy(update={"horizon": horizon, "provenance": made})


def kept(cast: Cast) -> CapacityRow:
    return keep_profile(tenant_id=cast.tenant.id, profile=measured())


def address(cast: Cast, key: str = KEY, twin: str = "html") -> str:
    return reverse("inspector:model", args=[cast.slug, key, twin])


def test_the_list_says_what_was_measured_and_what_is_only_declared(cast: Cast) -> None:
    kept(cast)
    page = cast.page("models/")
    assert KEY in page and "8,090" in page and "stale" in page
    assert "not measured" in page
    assert {line["model"] for line in cast.data("models.json")} >= {"strict/horizon-8000"}


def test_the_page_of_a_model_plots_every_sample_and_says_it_in_words(cast: Cast) -> None:
    kept(cast)
    page = cast.operator.get(address(cast)).content.decode()
    assert page.count(" ms</title>") == 7
    assert "7 samples; instructions were followed up to 8,090 tokens of 128,000." in page
    assert "Samples by rung" in page


def test_an_unknown_model_has_no_page(cast: Cast) -> None:
    assert cast.operator.get(address(cast, "openai/never-seen")).status_code == 404


def test_dots_of_one_rung_do_not_cover_one_another() -> None:
    plot = ladder_plot(measured())
    assert len({(dot.x, dot.y) for dot in plot.dots}) == 7
    assert all(0 < dot.x < plot.width for dot in plot.dots)


def preview(cast: Cast, key: str = KEY) -> str:
    return reverse("inspector:probe", args=[cast.slug, key])


def test_a_probe_is_previewed_started_with_a_reason_and_watched(
    cast: Cast, settings: object
) -> None:
    settings.CTX_PROVIDER_URLS = {"openai": "http://127.0.0.1:9/v1"}  # type: ignore[attr-defined]
    kept(cast)
    told = cast.operator.get(preview(cast), {"most": "8,000"}).content.decode()
    assert "rungs of 4,000, 8,000 tokens" in told
    assert "no provider charges for it" in told and "horizon 8,090 tokens" in told
    form = {"most": "8,000", "reason": "It forgets its tools."}
    assert cast.operator.post(preview(cast), form).status_code == 303
    job = Job.objects.get(tenant_id=cast.tenant.id, kind="capacity.probe")
    assert job.arguments["largest"] == 8_000
    entry = AuditEntry.objects.get(action="probe.started")
    assert (entry.target, entry.reason) == (KEY, "It forgets its tools.")
    assert entry.before == {"horizon": 8_090, "confidence": 0.71, "samples": 7}
    assert entry.after["largest"] == 8_000
    page = cast.operator.get(address(cast)).content.decode()
    assert 'hx-trigger="every 1s"' in page
    assert "waits or runs" in cast.operator.get(preview(cast)).content.decode()
    part = cast.operator.get(reverse("inspector:model-ladder", args=[cast.slug, KEY]))
    assert b"waiting for a worker" in part.content


def test_a_probe_needs_a_reason_and_keeps_what_was_typed(cast: Cast, settings: object) -> None:
    settings.CTX_PROVIDER_URLS = {"openai": "http://127.0.0.1:9/v1"}  # type: ignore[attr-defined]
    kept(cast)
    again = cast.operator.post(preview(cast), {"most": "9,000"})
    assert again.status_code == 422
    assert 'value="9,000"' in again.content.decode()
    assert not Job.objects.filter(tenant_id=cast.tenant.id).exists()
    assert not AuditEntry.objects.filter(action="probe.started").exists()


def test_a_second_probe_of_the_same_model_is_the_first_one(cast: Cast, settings: object) -> None:
    settings.CTX_PROVIDER_URLS = {"openai": "http://127.0.0.1:9/v1"}  # type: ignore[attr-defined]
    kept(cast)
    for _ in range(2):
        cast.operator.post(preview(cast), {"reason": "Again."})
    assert Job.objects.filter(tenant_id=cast.tenant.id).count() == 1


@pytest.mark.parametrize("most", ["12", "many", "-4", "99999999999"])
def test_an_odd_limit_is_refused_with_the_bounds(cast: Cast, most: str) -> None:
    kept(cast)
    response = cast.operator.post(preview(cast), {"most": most, "reason": "Why not."})
    assert response.status_code == 422
    assert "500 to 2,000,000" in response.content.decode()
    assert "500 to 2,000,000" in cast.operator.get(preview(cast), {"most": most}).content.decode()


HOSTED = "anthropic/claude-sonnet-4-6"


def test_a_hosted_model_says_its_price_and_its_sessions_and_asks_for_consent(cast: Cast) -> None:
    told = cast.operator.get(preview(cast, HOSTED), {"exact": "1"}).content.decode()
    assert "each call is paid for" in told
    assert re.search(r"\$[0-9.,]+ to about \$[0-9.,]+", told)
    assert "of 1 open ones of the model" in told
    cheaper = cast.operator.get(preview(cast, HOSTED)).content.decode()
    assert "which costs least of its family" in cheaper
    refused = cast.operator.post(preview(cast, HOSTED), {"reason": "How far?"})
    assert refused.status_code == 409
    agreed = {"reason": "How far?", "hosted": "1", "exact": "1"}
    assert cast.operator.post(preview(cast, HOSTED), agreed).status_code == 303
    entry = AuditEntry.objects.get(action="probe.started")
    assert (entry.after["hosted"], entry.after["exact"]) == (True, True)


def test_viewers_see_what_a_probe_would_take_and_cannot_start_it(cast: Cast) -> None:
    page = cast.viewer.get(preview(cast, HOSTED)).content.decode()
    assert "This is a preview" in page and 'name="reason"' not in page
    assert cast.viewer.post(preview(cast, HOSTED), {"reason": "I try."}).status_code == 403


def test_a_model_whose_name_no_address_can_carry_is_listed_without_a_link(cast: Cast) -> None:
    odd = measured().model_copy(update={"model": "two\nlines <b>" + "x" * 300})
    keep_profile(tenant_id=cast.tenant.id, profile=odd)
    assert "&lt;b&gt;" in cast.page("models/")


def test_the_end_of_a_probe_renews_the_figures_above_its_ladder(cast: Cast) -> None:
    kept(cast)
    part = reverse("inspector:model-ladder", args=[cast.slug, KEY])
    assert cast.operator.get(part)["HX-Refresh"] == "true"
    cast.operator.post(preview(cast), {"most": "4000", "hosted": "1", "reason": "How far?"})
    assert "HX-Refresh" not in cast.operator.get(part)


def test_sizes_along_the_ladder_fit_their_axis() -> None:
    base = metadata_profile(
        provider="openai", model="wide", declared_window=1_000_000, max_output=4_096
    )
    samples = tuple(
        Observation(tokens=size, actual_tokens=size, grade=Grade.STRICT, latency_ms=9)
        for size in (4_000, 900_000)
    )
    made = Provenance(source="probe", probed_at="", ladder=LADDER_VERSION, observations=samples)
    plot = ladder_plot(base.model_copy(update={"provenance": made}))
    assert plot.ticks[-1].label == "1M"
    assert all(len(tick.label) <= 4 for tick in plot.ticks)
