"""Whoever changes a profile changes the newest revision: nothing that was learnt meanwhile is undone (capacity spec 1)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction

from ctxengine.engine.capacity.feedback import with_failed_instruction
from ctxengine.engine.capacity.profile import CapacityProfile
from ctxengine.service.clock import utc_now
from ctxengine.service.probe import profiles, revise
from ctxengine.service.probe.profiles import hold_profile, keep_profile, profile_of
from ctxengine.service.working_set import replan
from tests.cast import AT, Runtime
from tests.service.probe.test_feedback import MODEL, opened, probed, reported, rows, stopped
from tests.service.working_set.test_loop import REFUSED, live
from tests.service.working_set.test_loop import opened as long_lived

KEY = ("openai", MODEL)


def in_force(runtime: Runtime) -> CapacityProfile:
    return profile_of(runtime.actor.tenant_id, runtime.row.provider, runtime.row.model)


def lowered(runtime: Runtime) -> None:
    """Another session's run failed an instruction near the horizon."""
    fallen = with_failed_instruction(
        in_force(runtime), request_tokens=45_000, at=utc_now().isoformat()
    )
    keep_profile(tenant_id=runtime.actor.tenant_id, profile=fallen, source="feedback")


def waiting(call: Callable[[], None]) -> threading.Thread:
    """The call on another connection, which comes to wait for a profile that the test holds."""

    def work() -> None:
        try:
            call()
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(600):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            )
            if cursor.fetchone()[0] or not thread.is_alive():
                break
        time.sleep(0.02)
    assert thread.is_alive(), "it did not wait for the profile"
    return thread


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("engine", ["suffix", "working_set"])
@pytest.mark.parametrize("taught_before", [False, True])
def test_a_run_that_ends_meanwhile_corrects_the_revision_in_force(
    engine: str, taught_before: bool
) -> None:
    runtime = opened(engine)
    probed(runtime, 50_000)
    if taught_before:
        keep_profile(
            tenant_id=runtime.actor.tenant_id, profile=in_force(runtime), source="feedback"
        )
    runtime.ask("Do it.")
    runtime.assemble()
    with transaction.atomic():
        hold_profile(runtime.actor.tenant_id, *KEY)
        thread = waiting(lambda: reported(runtime, 1_000, cached=900))
        lowered(runtime)
    thread.join(30)
    now = in_force(runtime)
    assert (now.horizon.tokens, now.cache.value) == (45_000, "reported")
    assert (now.tokens_per_char_millionths is not None) is (engine == "working_set")
    assert rows(runtime)[0].profile["cache"] == "unknown"


@pytest.mark.django_db
def test_a_failed_instruction_lowers_what_is_in_force_and_not_what_was_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = opened()
    probed(runtime, 50_000)
    before_holding(monkeypatch, revise, lambda: probed(runtime, 20_000))
    stopped(runtime, 19_000)
    assert in_force(runtime).horizon.tokens == 19_000


@pytest.mark.django_db
def test_a_refused_length_keeps_what_was_learnt_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = long_lived(window=100_000, max_output=1_000)
    live(runtime, 16, lines=90)
    runtime.ask("Once more, please.")
    runtime.assemble()
    assert runtime.fail(400, REFUSED).next == "reassemble"
    known = in_force(runtime)
    horizon = known.horizon.model_copy(update={"tokens": known.horizon.tokens // 2})
    fallen = known.model_copy(update={"horizon": horizon})
    before_holding(
        monkeypatch,
        replan,
        lambda: keep_profile(tenant_id=runtime.actor.tenant_id, profile=fallen, source="feedback"),
    )
    runtime.assemble()
    now = in_force(runtime)
    assert (now.horizon, now.verified_window) == (horizon, 5_000)


def before_holding(
    monkeypatch: pytest.MonkeyPatch, module: object, act: Callable[[], object]
) -> None:
    """Have somebody act at the last moment before a profile is held."""
    due = [act]

    def held(*key: object) -> None:
        while due:
            due.pop()()
        hold_profile(*key)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "hold_profile", held)


@pytest.mark.django_db
def test_the_revision_kept_last_is_in_force_whatever_a_clock_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = opened()
    probed(runtime, 50_000)
    for hours, horizon in ((0, 40_000), (9, 30_000), (-9, 20_000)):
        moment = AT + timedelta(hours=hours)
        monkeypatch.setattr(profiles, "utc_now", lambda moment=moment: moment)
        probed(runtime, horizon, at=AT.isoformat())
        assert in_force(runtime).horizon.tokens == horizon
