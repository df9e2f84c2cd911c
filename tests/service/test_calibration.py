"""What receipts and refusals teach is kept whole under concurrency, and new plans heed it."""

from __future__ import annotations

import threading
import uuid

import pytest
from django.db import connection, transaction

from ctxengine.engine.tokens.usage import Usage, normalise
from ctxengine.ledger.models import Calibration, Tenant
from ctxengine.service.calibration import ModelKey, learn_receipt, learn_refusal
from ctxengine.service.learnt_window import known_facts, learnt_window
from tests.cast import AT, Runtime, new_actor


def key_of(tenant_id: uuid.UUID) -> ModelKey:
    return ModelKey(tenant_id, "anthropic", "claude-sonnet-4-6")


def window_of(runtime: Runtime) -> int:
    runtime.ask("Hello.")
    return int(runtime.assemble().budget["window"])


def receipt(tokens: int) -> Usage:
    return normalise("anthropic", {"input_tokens": tokens, "output_tokens": 1})


@pytest.mark.django_db(transaction=True)
def test_receipts_that_arrive_at_one_moment_all_count() -> None:
    key = key_of(uuid.uuid4())
    Tenant.objects.create(
        id=key.tenant_id, slug=f"t-{key.tenant_id.hex[:8]}", name="t", created_at=AT
    )
    gate = threading.Barrier(4)

    def learn() -> None:
        try:
            gate.wait(10)
            with transaction.atomic():
                learn_receipt(key, 1_000, receipt(1_200))
        finally:
            connection.close()

    threads = [threading.Thread(target=learn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row = Calibration.objects.get(**key.fields)
    assert (row.samples, row.accepted_max) == (4, 1_200)


@pytest.mark.django_db
def test_a_stated_maximum_bounds_the_window_of_new_sessions() -> None:
    actor = new_actor()
    runtime = Runtime(actor=actor)
    runtime.ask("word " * 180_000)
    runtime.assemble()
    runtime.fail(400, "prompt is too long: 213462 tokens > 150000 maximum")
    assert window_of(Runtime(actor=actor)) == 150_000
    assert window_of(Runtime(actor=actor, window=190_000)) == 190_000
    assert window_of(Runtime()) == 1_000_000


@pytest.mark.django_db
def test_a_refusal_without_numbers_bounds_it_a_tenth_below() -> None:
    key = key_of(new_actor().tenant_id)
    learn_refusal(key, rejected=100_000, maximum=None, factor=1_000_000)
    assert learnt_window(key.tenant_id, key.provider, key.model) == 90_000
    facts = known_facts(key.tenant_id, key.provider, key.model)
    assert (facts.window, facts.source) == (90_000, "learnt")
    learn_receipt(key, 90_000, receipt(95_000))
    assert learnt_window(key.tenant_id, key.provider, key.model) == 95_000


@pytest.mark.django_db
def test_a_model_that_takes_more_than_it_refused_is_believed() -> None:
    key = key_of(new_actor().tenant_id)
    learn_refusal(key, rejected=100_000, maximum=100_000, factor=1_000_000)
    learn_receipt(key, 110_000, receipt(120_000))
    assert learnt_window(key.tenant_id, key.provider, key.model) is None
