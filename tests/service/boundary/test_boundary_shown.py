"""Units that are shown again behind a checkpoint: what reading them takes."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ctxengine.engine.ids import EventSeq
from ctxengine.service.boundary.read import checkpoints_of
from ctxengine.service.specs import Content, TakeInput
from ctxengine.service.take_input import take_input
from tests.service.boundary.staging import provided
from tests.service.boundary.talking import session

pytestmark = pytest.mark.django_db


def test_reading_checkpoints_takes_no_statement_more_for_more_units_shown_again(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements, shown = [], []
    for reminders in (1, 6):
        with provided(settings, monkeypatch) as stage:
            stage.runtime = session("anthropic", window=9_000)
            runtime = stage.runtime
            runtime.ask("Listen.")
            for number in range(reminders):
                take_input(
                    actor=runtime.actor,
                    run_id=runtime.run,
                    spec=TakeInput(message=Content(raw=f"Rule {number}."), retain="reminder"),
                )
            runtime.assemble()
            runtime.say("Yes.")
            stage.talk(6)
            stage.work_off()
        with CaptureQueriesContext(connection) as asked:
            found = checkpoints_of(actor=runtime.actor, session_id=runtime.session)
        (line,) = found.lines
        units = [
            unit
            for sequence in line.point.shown
            for unit in runtime.log.units(EventSeq(sequence), EventSeq(sequence + 1))
        ]
        assert line.again == sum(unit.tokens for unit in units) > 0
        statements.append(len(asked))
        shown.append(len(units))
    assert shown[1] > shown[0] and statements[1] == statements[0]
