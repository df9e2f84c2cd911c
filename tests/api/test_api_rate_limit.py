"""A key that floods waits for the next window; the others do not notice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache

from tests.api.door import Answer, Door

NOON = 1_800_000_000.0


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    moment = [NOON]
    monkeypatch.setattr(time, "time", lambda: moment[0])
    cache.clear()
    yield moment
    cache.clear()


def answers(door: Door, count: int) -> list[Answer]:
    return [door.send("GET", "sessions") for _ in range(count)]


def test_a_key_waits_once_its_share_of_the_minute_is_spent(
    door: Door, stranger: Door, now: list[float], settings: Any
) -> None:
    settings.CTX_RATE_LIMIT = 3
    assert [answer.status for answer in answers(door, 5)] == [200, 200, 200, 429, 429]
    refused = answers(door, 1)[0]
    assert refused.code == "too_many_calls"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert answers(stranger, 1)[0].status == 200
    now[0] += int(refused.headers["Retry-After"])
    assert answers(door, 1)[0].status == 200


def test_a_call_that_was_refused_changed_nothing(
    door: Door, now: list[float], settings: Any
) -> None:
    settings.CTX_RATE_LIMIT = 1
    answers(door, 1)
    body = {"engine": "suffix", "model": {"provider": "anthropic", "name": "claude-sonnet-4-6"}}
    assert door.send("POST", "sessions", body, once="a").status == 429
    now[0] += 60
    assert answers(door, 1)[0].json["items"] == []


def test_without_a_limit_nobody_waits(door: Door, now: list[float]) -> None:
    assert {answer.status for answer in answers(door, 20)} == {200}


def test_a_wrong_key_is_told_so_rather_than_counted(
    nobody: Door, now: list[float], settings: Any
) -> None:
    settings.CTX_RATE_LIMIT = 1
    assert {answer.status for answer in answers(nobody, 3)} == {401}
