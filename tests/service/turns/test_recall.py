"""`recall` opens everything again: results, parts of them, whole turns; under the trust it had (capacity spec 3 and 10)."""

from __future__ import annotations

import json

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.turns.turn import turns_of
from ctxengine.ledger.queries.turns import turn_spans
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import PolicySpec
from tests.cast import PROVIDERS, Call, Runtime

pytestmark = pytest.mark.django_db

LOG = "\n".join(f"{n:05} crane {n % 7} lifted a crate" for n in range(2_000))
BLOB = json.dumps({"rows": ["v" * 40 + str(n) for n in range(2_000)]})


def talked(provider: str = "anthropic") -> Runtime:
    runtime = Runtime(provider=provider)
    runtime.ask("What do the cranes do?")
    runtime.look("c1", LOG, arguments='{"path":"cranes.log"}')
    runtime.assemble()
    runtime.say("They lift crates.")
    runtime.turn("Thank you.", "My pleasure.")
    runtime.ask("One more thing.")
    return runtime


def recalled(runtime: Runtime, **arguments: object) -> str:
    runtime.assemble()
    taken = runtime.say("", Call("r1", "recall", json.dumps(arguments)))
    assert taken.calls[0].action == "answered"
    return taken.calls[0].result or ""


def evidence(runtime: Runtime) -> str:
    return f"{runtime.events(EventType.TOOL_RESULT)[0].sequence}.0"


def trust_of_answer(runtime: Runtime) -> str:
    return runtime.events(EventType.TOOL_RESULT)[-1].trust


def test_a_result_that_is_too_long_comes_as_both_ends_in_whole_lines() -> None:
    runtime = talked()
    shown = recalled(runtime, id=evidence(runtime))
    lines = shown.split("\n")
    assert lines[0] == "00000 crane 0 lifted a crate"
    assert lines[-1].startswith("01999 ")
    assert f'recall them with id "{evidence(runtime)}" and lines' in shown
    assert 29_000 < len(shown) < 31_000
    assert trust_of_answer(runtime) == "EXTERNAL_UNTRUSTED"


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ({"lines": "101-103"}, "00100 crane", "00102 crane"),
        ({"range": "101-103"}, "00100 crane", "00102 crane"),
        ({"lines": "7"}, "00006 crane", "00006 crane"),
        ({"chars": "1-5"}, "00000", "00000"),
        ({"lines": "8", "chars": "7-11"}, "crane", "crane"),
    ],
)
def test_a_part_is_read_by_lines_and_by_characters(
    asked: dict[str, str], first: str, last: str
) -> None:
    runtime = talked()
    note, *lines = recalled(runtime, id=evidence(runtime), **asked).split("\n")
    assert note.startswith(("[lines ", "[characters "))
    assert lines[0].startswith(first)
    assert lines[-1].startswith(last)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_turn_is_read_whole_by_its_number(provider: str) -> None:
    runtime = talked(provider)
    shown = recalled(runtime, turn=1)
    assert shown.startswith("turn 1\nuser [")
    assert "What do the cranes do?" in shown
    assert 'assistant called read: {"path":"cranes.log"}' in shown
    assert f"[evidence:{evidence(runtime)} — {len(LOG):,} characters; call recall with id" in shown
    assert "They lift crates." in shown
    assert "My pleasure." not in shown
    assert trust_of_answer(runtime) == "EXTERNAL_UNTRUSTED"
    body = runtime.assemble().body.decode()
    assert "They lift crates." in body
    assert all(
        replay_request(actor=runtime.actor, request_id=r.id).identical for r in runtime.requests
    )


def test_a_turn_without_results_is_the_users_and_the_models_own() -> None:
    runtime = talked()
    assert "My pleasure." in recalled(runtime, turn="2")
    assert trust_of_answer(runtime) == "MODEL"


def test_what_is_not_there_is_said() -> None:
    runtime = talked()
    assert "numbered from 1 to 3" in recalled(runtime, turn=9)
    for arguments, words in (
        ({}, "Give an id"),
        ({"id": "12.0", "turn": "1"}, "Give one of id, turn"),
        ({"id": "999.0"}, "Nothing of this session"),
        ({"presentation": "1"}, "Nothing of this session"),
        ({"id": evidence(runtime), "lines": "9-3"}, "Give lines as"),
        ({"id": evidence(runtime), "lines": "9000"}, "there are only 2,000 lines"),
        ({"id": evidence(runtime), "chars": "x"}, "Give chars as"),
    ):
        runtime.assemble()
        taken = runtime.say("", Call("r2", "recall", json.dumps(arguments)))
        assert words in (taken.calls[0].result or "")


def test_one_long_line_is_read_to_its_end_by_characters() -> None:
    runtime = Runtime()
    runtime.ask("Look.")
    runtime.look("c1", BLOB)
    shown = recalled(runtime, id=evidence(runtime))
    assert "the line goes on for" in shown
    tail = recalled(runtime, id=evidence(runtime), chars=f"{len(BLOB) - 9}-{len(BLOB)}")
    assert tail.split("\n")[1] == BLOB[-10:]


def test_turns_are_numbered_alike_by_rows_and_by_units() -> None:
    runtime = talked()
    head = runtime.log.head().sequence
    units = runtime.log.units(1, head + 1)  # type: ignore[arg-type]
    spans = turn_spans(runtime.actor.tenant_id, runtime.session)
    assert [(s.number, s.first, s.last) for s in spans] == [
        (t.number, t.first, t.last) for t in turns_of(units)
    ]


@pytest.mark.parametrize("engine", ["suffix", "working_set"])
@pytest.mark.parametrize("window", [8_000, 12_000, 16_000, 40_000])
def test_a_recall_gives_no_more_than_its_request_can_show(engine: str, window: int) -> None:
    policy = PolicySpec(reserve=1_000, history_floor=500)
    runtime = Runtime(window=window, policy=policy, extra={"engine": engine})
    runtime.ask("What do the cranes do?")
    runtime.look("c1", LOG)
    runtime.assemble()
    runtime.say("They lift crates.")
    runtime.ask("Which crane was the last?")
    shown = recalled(runtime, id=evidence(runtime))
    assert "are not shown" in shown
    sent = runtime.assemble().body.decode()
    assert shown.split("\n")[-1] in sent and shown.split("\n")[0] in sent
    assert (len(shown) < 30_000) == (window < 40_000)
