"""Another model behind the name of a measured one is noticed, and its profile is stale from then on (capacity spec 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from ctxengine.engine.capacity.profile import CapacityProfile, Stale, why_stale
from ctxengine.ledger.models import CapacityRow, Job, JobState
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.clock import utc_now
from ctxengine.service.probe import look
from ctxengine.service.probe.job import KIND as PROBE
from ctxengine.service.probe.profiles import profile_of
from ctxengine.service.probe.run_probe import ProbeWanted, run_probe
from tests.cast import Runtime
from tests.work_off import work_off

pytestmark = pytest.mark.django_db(transaction=True)

MODEL = "strict/horizon-4k"
"""One that the strict provider lists."""


@pytest.fixture
def served(settings: Any) -> Any:
    """Serves the models with these windows, at the address that the operator lists."""

    @contextmanager
    def serve(windows: Mapping[str, int]) -> Iterator[None]:
        with StrictServer(StrictProvider(windows=windows)) as server:
            settings.CTX_PROVIDER_URLS = {"ollama": server.url}
            yield

    return serve


def measured(served: Any) -> Runtime:
    """A session whose model was probed."""
    runtime = Runtime(provider="ollama", model=MODEL, extra={"engine": "working_set"})
    with served({}):
        wanted = ProbeWanted(provider="ollama", model=MODEL, largest=5_000)
        run_probe(actor=runtime.actor, wanted=wanted)
    return runtime


def told(text: str) -> str:
    """What a server of this provider answers."""
    return (
        f'{{"message":{{"role":"assistant","content":"{text}"}},"done":true,"done_reason":"stop"}}'
    )


def turn(runtime: Runtime) -> None:
    runtime.ask("Look it up.")
    runtime.assemble()
    runtime.hear(told("There."))


def looks(runtime: Runtime) -> list[Job]:
    return list(Job.objects.filter(tenant_id=runtime.actor.tenant_id, kind=look.KIND))


def revisions(runtime: Runtime) -> int:
    return CapacityRow.objects.filter(tenant_id=runtime.actor.tenant_id, source="metadata").count()


def known(runtime: Runtime) -> CapacityProfile:
    return profile_of(runtime.actor.tenant_id, "ollama", MODEL)


def due(runtime: Runtime) -> Stale | None:
    return why_stale(known(runtime), now=utc_now(), local=True)


def test_a_model_that_is_still_the_same_is_looked_at_now_and_then(served: Any) -> None:
    runtime = measured(served)
    with served({}):
        turn(runtime)
        turn(runtime)
        assert len(looks(runtime)) == 1
        work_off(runtime.actor.tenant_id, kind=look.KIND)
        (job,) = looks(runtime)
        assert (job.state, job.result) == (JobState.DONE, {"listed": True, "changed": False})
        turn(runtime)
        assert len(looks(runtime)) == 1
        past = utc_now() - look.EVERY_LOCAL - timedelta(seconds=1)
        Job.objects.filter(id=job.id).update(created_at=past)
        turn(runtime)
    assert len(looks(runtime)) == 2
    assert (revisions(runtime), due(runtime)) == (0, None)


def test_one_with_another_window_is_probed_again_after_the_next_turn(served: Any) -> None:
    runtime = measured(served)
    before = known(runtime)
    with served({MODEL: 2_000}):
        turn(runtime)
        work_off(runtime.actor.tenant_id, kind=look.KIND)
        after = known(runtime)
        assert revisions(runtime) == 1 and due(runtime) is Stale.CHANGED
        assert (after.declared_window, after.horizon.tokens) == (2_000, 2_000)
        assert after.horizon.confidence < before.horizon.confidence
        assert not Job.objects.filter(tenant_id=runtime.actor.tenant_id, kind=PROBE).exists()
        turn(runtime)
        (job,) = Job.objects.filter(tenant_id=runtime.actor.tenant_id, kind=PROBE)
        assert job.state == JobState.QUEUED
        run_probe(
            actor=runtime.actor, wanted=ProbeWanted(provider="ollama", model=MODEL, largest=1_500)
        )
        assert due(runtime) is None


def test_a_provider_that_does_not_answer_says_nothing(served: Any) -> None:
    runtime = measured(served)
    turn(runtime)
    work_off(runtime.actor.tenant_id, kind=look.KIND)
    assert (revisions(runtime), due(runtime)) == (0, None)
