"""Where messages go: the given broker, or an embedded one that starts whatever its data are like."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ctxengine.site.broker import BrokerUnavailable, EmbeddedBroker, broker_url
from ctxengine.site.env import SettingError
from ctxengine.site.supervisor import Supervisor


@pytest.mark.parametrize(
    "url", ["redis://h:6379/1", "rediss://h", "amqp://u:p@h//", "amqps://h", "redis+socket:///a/b"]
)
def test_a_given_broker_is_taken_as_it_is(url: str, tmp_path: Path) -> None:
    assert broker_url(url, data=tmp_path) == url


@pytest.mark.parametrize("url", ["memory://", "h:6379", "sqs://key:secret@"])
def test_another_kind_is_refused_and_its_secrets_are_not_told(url: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="CELERY_BROKER_URL") as refused:
        broker_url(url, data=tmp_path)
    assert "secret" not in str(refused.value)


def test_the_socket_fits_whatever_the_data_folder_is_called(tmp_path: Path) -> None:
    assert EmbeddedBroker(Path("/d")).url() == "redis+socket:///d/broker/broker.sock"
    deep = EmbeddedBroker(tmp_path / ("deep " * 30))
    other = EmbeddedBroker(tmp_path / ("deep " * 31))
    assert len(str(deep.socket)) < 108
    assert deep.socket != other.socket


def test_a_machine_without_a_program_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxengine.site.broker.find_spec", lambda _: None)
    monkeypatch.setattr("ctxengine.site.broker.shutil.which", lambda _: None)
    with pytest.raises(BrokerUnavailable, match="CELERY_BROKER_URL"):
        EmbeddedBroker(tmp_path).child()


def test_data_that_keep_it_from_starting_are_thrown_away(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    appended = broker.home / "appendonlydir"
    appended.mkdir(parents=True, mode=0o700)
    (appended / "appendonly.aof.manifest").write_text("this is no manifest")
    said: list[str] = []
    supervisor = Supervisor(said.append)
    try:
        supervisor.add(broker.child())
        deadline = time.monotonic() + 30
        while not broker.answers():
            assert time.monotonic() < deadline, said
            supervisor.tick()
    finally:
        supervisor.stop()
    assert said
