"""The sender: it outlives its broker, says so quickly when there is none, and its workers take only what they understand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from ctxengine.service.probe.run_probe import SAMPLE_TIMEOUT_S, ProbeWanted
from tests.faults.stage import Broker, available_brokers, eventually
from workers import send
from workers.app import app, queue_on_broker, transport_options
from workers.send import BrokerAway, broker_answers, send_job, waiting


@pytest.fixture(params=["embedded", "redis"])
def broker(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Broker]:
    kind = available_brokers().get(request.param)
    if kind is None:
        pytest.skip(f"{request.param} is not installed here")
    made = kind(tmp_path)
    monkeypatch.setattr(send, "_senders", {})
    monkeypatch.setattr(send, "_quiet_until", 0.0)
    before = {name: app.conf[name] for name in ("broker_url", "broker_transport_options")}
    app.conf.update(broker_url=made.url, broker_transport_options=transport_options(made.url))
    yield made
    made.end()
    app.conf.update(before)


def test_messages_are_sent_counted_and_sent_again_by_the_same_process_after_a_restart(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.start()
    eventually(broker_answers, "an answer")
    assert waiting("probe") == 0
    for _ in range(3):
        send_job(uuid4(), uuid4(), "probe")
    assert waiting("probe") == 3
    broker.process.kill()
    assert waiting("probe") is None
    with pytest.raises(BrokerAway):
        send_job(uuid4(), uuid4(), "probe")
    broker.start()
    eventually(broker_answers, "an answer after the restart")
    assert waiting("probe") == 3
    monkeypatch.setattr(send, "_quiet_until", 0.0)
    send_job(uuid4(), uuid4(), "probe")
    assert waiting("probe") == 4


def test_after_a_failure_nobody_waits_for_the_broker_for_a_while(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BrokerAway):
        send_job(uuid4(), uuid4(), "probe")
    asked: list[object] = []
    monkeypatch.setattr(send, "_talk", asked.append)
    with pytest.raises(BrokerAway):
        send_job(uuid4(), uuid4(), "probe")
    assert asked == []


def test_every_queue_of_the_kinds_is_listened_to_and_messages_are_json_alone() -> None:
    listened = {queue.name for queue in app.conf.task_queues}
    assert listened == {
        queue_on_broker(name) for name in ("compaction", "probe", "replay", "upkeep")
    }
    assert app.conf.accept_content == ["json"]
    assert (app.conf.task_acks_late, app.conf.worker_prefetch_multiplier) == (True, 1)
    assert app.conf.task_reject_on_worker_lost


def test_no_broker_takes_a_message_back_while_the_longest_probe_runs() -> None:
    """RabbitMQ closes the channel of a consumer that acknowledges late, after half an hour unless that says otherwise."""
    (longest,) = (
        bound.le
        for bound in ProbeWanted.model_fields["time_box_s"].metadata
        if hasattr(bound, "le")
    )
    for queue in app.conf.task_queues:
        milliseconds = queue.consumer_arguments["x-consumer-timeout"]
        assert milliseconds > (longest + 2 * SAMPLE_TIMEOUT_S) * 1000, queue.name
