"""What a step reads does not grow with the session: queries and rows of a young session and of an old one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection

from ctxengine.engine.events import EventType
from ctxengine.engine.history import working_set_told
from ctxengine.engine.history.working_set_told import told_turns
from ctxengine.engine.turns.closed import cards_of, closed_turns
from ctxengine.ledger import ahead
from ctxengine.ledger.ahead import Read, Rows
from ctxengine.service.specs import PolicySpec
from ctxengine.service.wiring import log_of
from tests.cast import Call, Runtime, tool

pytestmark = pytest.mark.django_db

AGES = (20, 60)
_NUMBER = re.compile(r"\b\d+\b")


@contextmanager
def counted() -> Iterator[list[tuple[str, int]]]:
    """Every look at the database meanwhile, with the rows that it gave."""
    found: list[tuple[str, int]] = []

    def wrapper(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        result = execute(sql, params, many, context)
        if sql.startswith("SELECT"):
            found.append((_NUMBER.sub("#", sql), context["cursor"].cursor.rowcount))
        return result

    def together(reads: Sequence[Read]) -> list[Rows]:
        rows = read_together(reads)
        found.extend(
            (_NUMBER.sub("#", r.sql), len(got)) for r, got in zip(reads, rows, strict=True)
        )
        return rows

    read_together = ahead._together
    with connection.execute_wrapper(wrapper), patch.object(ahead, "_together", together):
        yield found


def grown() -> Runtime:
    return Runtime(
        tools=(tool("lookup"),),
        extra={"engine": "working_set"},
        window=5_000,
        max_output=500,
        policy=PolicySpec(compaction="none", history_floor=200),
    )


def lived(player: Runtime, through: int) -> None:
    for number in range(len(player.events(EventType.TURN_CLOSED)), through):
        player.turn(
            f"Tell me about harbour number{number} and its lamps. " + "It matters. " * 40,
            f"Harbour number{number} has {number} lamps. " + "They shine. " * 60,
        )


def planned(player: Runtime) -> int:
    (*_, newest) = player.events(EventType.WORKING_SET_PLANNED)
    assert newest.payload["packet_through"] > 4, "no packet yet: nothing is told by the thread"
    return newest.sequence


def test_a_later_step_of_a_run_reads_as_much_at_sixty_turns_as_at_twenty() -> None:
    player, seen = grown(), []
    for age in AGES:
        lived(player, age)
        player.ask("What about copper prices?")
        player.assemble()
        planned(player)
        player.say("", Call(f"c{age}", "lookup"))
        player.results((f"c{age}", "nothing was found"))
        with counted() as step:
            body = player.assemble().body.decode()
        assert "[thread]" in body
        seen.append(step)
        player.say("I cannot say.")
    assert seen[0] == seen[1]


def test_the_turns_that_a_thread_names_are_read_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_set_told, "_LOOKED_AT", 4)
    player, seen = grown(), []
    for age in AGES:
        lived(player, age)
        player.ask("What about copper prices?")
        log, sequence = log_of(player.row), planned(player)
        with counted() as look:
            turns = told_turns(log, sequence).cards
        assert [turn.number for turn in turns] == list(range(turns[0].number, turns[0].number + 4))
        seen.append(look)
        player.assemble()
        player.say("I cannot say.")
    assert seen[0] == seen[1]


def test_cards_by_number_are_those_of_the_whole_list() -> None:
    player = grown()
    lived(player, 7)
    log = log_of(player.row)
    closed = closed_turns(log)
    for numbers in ([], [3], [7, 2], [0, 1, 8], [9], [4, 5, 6]):
        assert cards_of(log, numbers) == cards_of(log, numbers, closed=closed)
