"""Imports of sessions that do not fit their model: a step looks at no more in a longer session, and nothing is silent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.importers.registry import read
from ctxengine.engine.step import floors_of
from ctxengine.ledger.models import Event, ImportRow, RequestRow, SessionRow
from ctxengine.service import reconstruct
from ctxengine.service.clock import utc_now
from ctxengine.service.import_transcript import import_file
from ctxengine.service.reconstruct import Reconstruction
from ctxengine.service.verify import verify_chains
from tests.cast import new_actor

AT_ONCE, OUTLINED = 1_000_000_000, 0
"""Answers from which requests are outlined: never, always."""
SMALL = "gpt-4"
"""A model of 8,192 tokens."""
HUGE = "word " * 9_000


def call(number: int) -> dict[str, Any]:
    function = {"name": "ls", "arguments": json.dumps({"path": f"/a/{number}"})}
    return {"id": f"c{number}", "type": "function", "function": function}


def chat(steps: int, *, run_every: int, result: str = "file " * 60) -> str:
    """Steps with a call and its result each; a run begins every so many of them."""
    messages: list[dict[str, Any]] = []
    for number in range(steps):
        if number % run_every == 0:
            messages.append({"role": "user", "content": f"task {number}"})
        said = "I look at it. " * 8
        messages += [
            {"role": "assistant", "content": said, "tool_calls": [call(number)]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": result},
        ]
    return json.dumps({"model": SMALL, "messages": messages})


class Looked(list[Any]):
    """A list that counts how many of its members were looked at, but for those at its very end."""

    seen = 0

    def __iter__(self) -> Iterator[Any]:
        for member in super().__iter__():
            Looked.seen += 1
            yield member

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        Looked.seen += len(found) if isinstance(place, slice) else 1
        return found


def looked_at(monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[int, int, int]:
    """Units and yields that rebuilding an outlined session looks at, and the session's steps."""
    (foreign,) = read(text, name="chat").sessions
    walk = Reconstruction(
        uuid4(), foreign, file_sha256="0" * 64, format="x", now=utc_now(),
        take=lambda _: None, outlined_from=OUTLINED,
    )  # fmt: skip
    walk.log._units = Looked()
    Looked.seen = 0
    yields = 0

    def counted(events: Any, *given: Any) -> Any:
        nonlocal yields
        yields += len(events)
        return floors_of(events, *given)

    monkeypatch.setattr(reconstruct, "floors_of", counted)
    walk.run()
    # Handing over reads them all once.
    units = Looked.seen
    return units, yields, len(walk.out.unfit) + walk.out.session.requests


@pytest.mark.parametrize(
    ("run_every", "result"),
    [(10, "file " * 60), (10_000, "file " * 60), (10_000, "x")],
    ids=["many runs", "one run that yields", "one run without anything to yield"],
)
def test_twice_the_steps_look_at_twice_as_much_and_no_more(
    monkeypatch: pytest.MonkeyPatch, run_every: int, result: str
) -> None:
    shorter = looked_at(monkeypatch, chat(300, run_every=run_every, result=result))
    longer = looked_at(monkeypatch, chat(600, run_every=run_every, result=result))
    assert (shorter[2], longer[2]) == (300, 600)
    for less, more in zip(shorter[:2], longer[:2], strict=True):
        assert more <= 2.6 * less + 50, (shorter, longer)


@pytest.mark.django_db
@pytest.mark.parametrize("outlined_from", [AT_ONCE, OUTLINED], ids=["at once", "outlined"])
def test_the_floors_in_force_are_those_that_all_yields_together_give(
    monkeypatch: pytest.MonkeyPatch, outlined_from: int
) -> None:
    (foreign,) = read(chat(120, run_every=15), name="chat").sessions
    walk = Reconstruction(
        uuid4(), foreign, file_sha256="0" * 64, format="x", now=utc_now(), outlined_from=outlined_from
    )  # fmt: skip
    made = walk.run()
    yields = made.log.every(EventType.YIELD_APPLIED)
    assert len(yields) > 3
    assert walk._floors == floors_of(yields, walk._total)
    assert walk._floors.cut > 0


@pytest.mark.django_db
@pytest.mark.parametrize("outlined_from", [AT_ONCE, OUTLINED], ids=["at once", "outlined"])
@pytest.mark.parametrize(("huge", "where"), [(1, "entry 4"), (3, "entry 4 to entry 8")])
def test_an_answer_whose_request_cannot_fit_is_kept_and_the_report_says_so(
    monkeypatch: pytest.MonkeyPatch, outlined_from: int, huge: int, where: str
) -> None:
    monkeypatch.setattr(reconstruct, "OUTLINED_FROM", outlined_from)
    small = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    large = [{"role": "user", "content": HUGE}, {"role": "assistant", "content": "a"}]
    messages = small + large * huge + small
    data = json.dumps({"model": SMALL, "messages": messages}).encode()
    outcome = import_file(actor=new_actor(), name="chat.json", data=data)
    assert outcome.status == "imported"
    lines = [line for line in outcome.report if line["code"] == "request_does_not_fit"]
    assert [(line["action"], line["where"], line["items"]) for line in lines] == [
        ("warned", where, 0)
    ]
    assert f"({huge} of them)" in lines[0]["detail"]
    assert ImportRow.objects.get(sha256=outcome.sha256).report == outcome.report
    (session,) = SessionRow.objects.all()
    answers = Event.objects.filter(session_id=session.id, type="model.response.completed").count()
    assert answers == huge + 2
    assert RequestRow.objects.filter(session_id=session.id).count() == session.requests == 2
    assert [report.problem for report in verify_chains(session_id=session.id)] == [None]


@pytest.mark.django_db
def test_a_session_whose_requests_all_fit_has_no_such_line() -> None:
    data = chat(3, run_every=1).encode()
    outcome = import_file(actor=new_actor(), name="chat.json", data=data)
    assert "request_does_not_fit" not in {line["code"] for line in outcome.report}
