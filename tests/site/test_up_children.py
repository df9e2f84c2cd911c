"""The processes that `up` starts, by their command lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxengine.service.jobs.kinds import QUEUES, TAKES_LONG, WAITED_FOR, queue_on_broker
from ctxengine.site.management.commands import up


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def test_every_queue_is_served_and_none_that_is_waited_for_shares_a_process_with_a_long_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many probes run, and however long: a turn's summary has processes that take none."""
    monkeypatch.setenv("CTX_WORKER_PROCESSES", "1")
    workers = up._workers(tmp_path)
    served = [set(option(worker.command, "--queues").split(",")) for worker in workers]
    assert set().union(*served) == set(map(queue_on_broker, QUEUES))
    waited_for, long = (set(map(queue_on_broker, queues)) for queues in (WAITED_FOR, TAKES_LONG))
    for queues in served:
        assert not (queues & waited_for and queues & long)
    assert all(int(option(worker.command, "--concurrency")) >= 1 for worker in workers)
    names = [option(worker.command, "--hostname") for worker in workers]
    assert len(set(names)) == len({worker.name for worker in workers}) == len(workers)
