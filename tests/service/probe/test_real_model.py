"""The ladder with a real model, for whoever has one: `CTX_REAL_MODEL` names it, `CTX_REAL_MODEL_URL` says where it is served.

The address is the base of an OpenAI-compatible API (it usually ends in `/v1`), such as a llama.cpp server gives.
`CTX_REAL_MODEL_LARGEST` is the highest prompt to try (tokens; 4,000 where it is not set), and so decides how long it takes.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from ctxengine.engine.capacity.profile import Grade
from ctxengine.ledger.models import SideCallRow
from ctxengine.service.probe.profiles import profile_of
from ctxengine.service.probe.run_probe import ProbeWanted, run_probe
from tests.cast import new_actor

MODEL = os.environ.get("CTX_REAL_MODEL", "")
URL = os.environ.get("CTX_REAL_MODEL_URL", "")
LARGEST = int(os.environ.get("CTX_REAL_MODEL_LARGEST", "4000"))

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not (MODEL and URL),
        reason="no real model: set CTX_REAL_MODEL and CTX_REAL_MODEL_URL (an OpenAI-compatible base address)",
    ),
]


def test_the_ladder_tells_what_a_real_model_follows(settings: Any) -> None:
    settings.CTX_PROVIDER_URLS = {"compatible": URL}
    actor = new_actor()
    wanted = ProbeWanted(provider="compatible", model=MODEL, largest=LARGEST, time_box_s=3_000)
    found = run_probe(actor=actor, wanted=wanted)
    samples = found.provenance.observations
    for sample in samples:
        sys.stderr.write(
            f"\n{sample.tokens:>8,} asked, {sample.actual_tokens:>8,} billed, {sample.grade.value:<6} "
            f"{sample.latency_ms:>8,} ms, {sample.cached_tokens} cached"
        )
    sys.stderr.write(f"\n{MODEL}: {found.horizon}, cache {found.cache.value}\n")
    assert samples and all(sample.latency_ms > 0 for sample in samples)
    billed = [sample.actual_tokens for sample in samples]
    assert min(billed) != max(billed), "rungs of several sizes were sent, by the model's own count"
    passed = [sample.actual_tokens for sample in samples if sample.grade is not Grade.FAIL]
    assert found.horizon.tokens <= max(passed, default=0)
    assert profile_of(actor.tenant_id, "compatible", MODEL) == found
    calls = SideCallRow.objects.filter(tenant_id=actor.tenant_id, purpose="probe")
    assert calls.count() >= len(samples)
