"""Cancelling while the model is silent, with a worker and an operator at the same time."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import connection

from ctxengine.engine.events import EventType
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.jobs.run import run_job
from ctxengine.service.specs import Content, TakeInput
from ctxengine.service.take_input import take_input
from tests.shrinking import body, row_nine
from tests.summing import Summing, asked, provider_of, told

pytestmark = pytest.mark.django_db(transaction=True)

STALL_SECONDS = 1.5


def test_a_job_that_is_cancelled_while_the_model_is_silent_installs_nothing(settings: Any) -> None:
    late = "One more thing: count the southern depot as well."
    ended: list[str] = []
    with provider_of(settings, told(stall_seconds=STALL_SECONDS)) as provider:
        runtime = Summing()
        job = runtime.press()

        def worker() -> None:
            try:
                ended.append(run_job(job.tenant_id, job.id, "test"))
            finally:
                connection.close()

        thread = threading.Thread(target=worker)
        thread.start()
        while not asked(provider) and thread.is_alive():
            time.sleep(0.02)
        # Nothing is held while the model is asked: others write and cancel at once.
        spec = TakeInput(message=Content(raw=late))
        take_input(actor=runtime.actor, run_id=runtime.run, spec=spec)
        cancel_job(actor=runtime.actor, job_id=job.id)
        thread.join()
        assert ended == ["cancelled"]
        assert not runtime.events(EventType.COMPACTED, EventType.YIELD_APPLIED)
        built = runtime.assemble()
        assert len(asked(provider)) == 1
    assert 'source="summary:deterministic"' in row_nine(body(built))
    assert built.body.decode().count(late) == 1
    runtime.all_proven()
