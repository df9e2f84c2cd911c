"""Requests under plans of the first version rebuild as they were sent, after an erasure too (design 4, 7.16)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ctxengine.engine.history import working_set
from ctxengine.engine.history import working_set_project as project
from ctxengine.engine.items import Unit
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.turns.record import closed_record
from ctxengine.service.erase import erase_person
from ctxengine.service.specs import PrincipalSpec
from tests.service.working_set.test_loop import body, opened, plans, verdicts

pytestmark = pytest.mark.django_db

FENCE = '```card metric\n{"label":"Copper","value":"9100"}\n```'
ANSWER = f"Here:\n{FENCE}\nand again\n{FENCE}\nDone, all said."


def twice(units: Sequence[Unit], counter: TokenCounter, **_: Any) -> tuple[Unit, ...]:
    return closed_record(units, counter, once=False)


def test_a_card_stands_as_often_as_the_plan_of_its_request_showed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = opened(6_500, principal=PrincipalSpec(id="mara"))
    with monkeypatch.context() as before:
        before.setattr(working_set.WorkingSet.model_fields["version"], "default", "working-set@1")
        working_set.WorkingSet.model_rebuild(force=True)
        before.setattr(project, "closed_record", twice)
        runtime.turn("Show copper.", ANSWER)
        runtime.turn("Next one.", "Here is the next one for you.")
    working_set.WorkingSet.model_rebuild(force=True)
    runtime.turn("And another one.", "Here is another one for you.")
    assert [plan["version"] for plan in plans(runtime)] == ["working-set@1"] * 2 + ["working-set@2"]
    assert (body(runtime, 1).count("Copper"), body(runtime, 2).count("Copper")) == (2, 1)
    assert verdicts(runtime) == {"identical"}
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert verdicts(runtime) <= {"identical", "identical_except"}
