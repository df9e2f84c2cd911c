"""Archive recovery: a history ten times the window is answered from a bounded view that says what it leaves out."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.providers.adapters.access import Access
from ctxengine.providers.adapters.anthropic import AnthropicAdapter
from ctxengine.providers.adapters.openai_responses import ResponsesAdapter
from ctxengine.providers.adapters.secret import Secret
from ctxengine.service.end_run import end_run
from ctxengine.service.specs import Content as Said
from ctxengine.service.specs import EndRun, ServiceError, TakeInput
from ctxengine.service.take_input import take_input
from tests.cast import Runtime
from tests.service.boundary.talking import (
    PATHS,
    answer_all,
    assembled,
    calls,
    send,
    session,
    strict_provider,
    unproven,
)

pytestmark = pytest.mark.django_db

WINDOW = 9_000
OBJECTIVE = "The objective: catalogue the archive."
RULE = "Always answer in one line."


def note(number: int) -> str:
    """What the user says in a turn."""
    return f"Note {number}: " + "shelf and box and folder and page " * 130


def archived(provider: str, turns: int = 110, **policy: Any) -> Runtime:
    """A session whose history weighs ten windows, none of it ever sent."""
    runtime = session(provider, window=WINDOW, **policy)
    for number in range(turns):
        runtime.ask(OBJECTIVE if number == 0 else note(number))
        if number == 3:
            reminder = Said(raw=RULE)
            take_input(
                actor=runtime.actor,
                run_id=runtime.run,
                spec=TakeInput(message=reminder, retain="reminder"),
            )
        end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="completed"))
    return runtime


def compacts(entry: Any) -> bool:
    """Whether a logged call is a compaction."""
    return "compact" in entry.path or '"compaction": {' in entry.body.decode().replace(
        '"compaction":{', '"compaction": {'
    )


def pairs(ranges: list[list[int]]) -> list[tuple[int, int]]:
    return [(first, last) for first, last in ranges]


def texts_of(body: bytes) -> str:
    """Every text of a body in its order, but for what a provider's window says."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict) and value.get("type") != "compaction":
            for name, inner in value.items():
                if name in {"text", "content", "input"} and isinstance(inner, str):
                    found.append(inner)
                else:
                    walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    asked = json.loads(body)
    walk(asked.get("messages") or asked["input"])
    return "\n".join(found)


def covered(
    runtime: Runtime, made: Any, ranges: list[tuple[int, int]], left_out: list[tuple[int, int]]
) -> None:
    """Ranges and what they leave out part the covered messages: each is in one of them, and in one only."""
    said = [
        event.sequence
        for event in runtime.events(EventType.USER_MESSAGE, EventType.INPUT_RECEIVED)
        if event.sequence < made.payload["cut"]
    ]
    within = [sum(first <= s <= last for first, last in [*ranges, *left_out]) for s in said]
    assert within == [1] * len(said)
    parts = sorted([*ranges, *left_out])
    assert all(before[1] < after[0] for before, after in pairwise(parts))
    assert parts[0][0] == said[0] and parts[-1] == ranges[-1] and parts[-1][1] >= said[-1]
    bounds = {bound for part in parts for bound in part}
    assert bounds <= {event.sequence for event in runtime.events()}
    # The newest whole turns are chosen; before them only what is required: the objective, and the reminder.
    assert len(ranges) == 3 and len(left_out) == 2


def notes_in(runtime: Runtime, ranges: list[tuple[int, int]]) -> list[int]:
    """Numbers of the notes whose messages lie there."""
    events = runtime.events(EventType.USER_MESSAGE)
    return [
        number
        for number, event in enumerate(events)
        if any(first <= event.sequence <= last for first, last in ranges) and number
    ]


def held(runtime: Runtime, ranges: list[tuple[int, int]], read: str) -> None:
    """All that the ranges name was read whole."""
    for number in notes_in(runtime, ranges):
        assert note(number) in read, f"note {number} is cut, or is not there"
    assert OBJECTIVE in read and RULE in read


def notice_of(left_out: list[tuple[int, int]]) -> str:
    """How the notice begins that names exactly these ranges."""
    named = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in left_out)
    return f"[archive] Events {named} are kept in the archive. They are neither shown nor"


def exact_count(runtime: Runtime, strict: Any, built: Any) -> None:
    """The assembled request was counted by its provider before it was handed out, as it is, and fits."""
    counted = calls(runtime, "count")
    assert counted[-1].job_id is None and counted[-1].outcome == "completed"
    entries = strict.provider.log.entries()
    sent = next(n for n, entry in enumerate(entries) if entry.path == PATHS[runtime.provider]
                and not compacts(entry))  # fmt: skip
    count = entries[sent - 1]
    assert "count_tokens" in count.path or "input_tokens" in count.path
    body, asked = json.loads(built.body), json.loads(count.body)
    name = "messages" if "messages" in body else "input"
    assert asked[name] == body[name]
    client = AnthropicAdapter if runtime.provider == "anthropic" else ResponsesAdapter
    url = strict.url if runtime.provider == "anthropic" else strict.openai_url
    tokens = client(Access(runtime.provider, url, Secret("k"))).count(body, timeout_s=30)
    budget = built.budget
    assert tokens is not None
    assert tokens <= budget["total"] - budget["reserve"] < WINDOW


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_a_history_ten_times_the_window_is_recovered_with_a_notice_and_exact_ranges(
    provider: str, settings: Any
) -> None:
    with strict_provider(settings) as strict:
        runtime = archived(provider, archive_recovery=True, durable_checkpoints=True)
        assert runtime.log.head().tokens > 10 * WINDOW
        runtime.ask("What is left to do?")
        built = assembled(runtime)
        status, answer = send(runtime, strict, built.body)
        assert status == 200, answer
        runtime.hear(answer)
        asked = [entry for entry in strict.provider.log.entries() if compacts(entry)]
        (made,) = runtime.events(EventType.COMPACTED)
        payload = made.payload
        assert payload["recovered"] and payload["kind"] == "native"
        ranges, left_out = pairs(payload["ranges"]), pairs(payload["left_out"])
        covered(runtime, made, ranges, left_out)
        read = texts_of(asked[0].body)
        held(runtime, ranges, read)
        assert not any(f"Note {n}: " in read for n in notes_in(runtime, left_out))
        # Required content first: the objective and the reminder, in front of everything that was chosen beside them.
        chosen = min(read.index(f"Note {n}: ") for n in notes_in(runtime, ranges[-1:]))
        assert read.index(OBJECTIVE) < chosen and read.index(RULE) < chosen
        notice = notice_of(left_out)
        assert notice in read, "what it read says what is missing"
        # The request: window, then the notice, then what is required, then the newest turn; nothing of it cut.
        shown = texts_of(built.body)
        # OpenAI's window keeps what was said to it in the user's role, the notice that it was made under among it.
        assert shown.count(notice) == (1 if provider == "anthropic" else 2)
        places = [shown.index(text) for text in (OBJECTIVE, RULE, "What is left to do?")]
        assert places == sorted(places)
        exact_count(runtime, strict, built)
        paid = len(calls(runtime, "compaction"))
        runtime.ask("And then?")
        answer_all(runtime, strict)
        assert len(calls(runtime, "compaction")) == paid == 1
    reasons = {span["reason"] for span in runtime.requests[0].manifest["spans"]}
    assert {"recovered", "left_in_archive", "retained", "in_native_window"} <= reasons
    assert not unproven(runtime)


def test_without_the_policy_nothing_is_recovered(settings: Any) -> None:
    with strict_provider(settings):
        runtime = archived("anthropic", turns=20)
        runtime.ask("What is left to do?")
        with pytest.raises(ServiceError) as caught:
            assembled(runtime)
    assert caught.value.extra["reason"] == "native_input_oversized"
    assert not runtime.events(EventType.COMPACTED)


def test_required_content_is_never_cut_even_where_nothing_fits_then(settings: Any) -> None:
    with strict_provider(settings):
        runtime = session("anthropic", window=WINDOW, archive_recovery=True)
        for number in range(12):
            runtime.ask(f"Note {number}")
            held = Said(raw=f"Never forget rule {number}. " + "It holds for ever and ever. " * 200)
            take_input(
                actor=runtime.actor,
                run_id=runtime.run,
                spec=TakeInput(message=held, retain="reminder"),
            )
            end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="completed"))
        runtime.ask("What now?")
        with pytest.raises(ServiceError) as caught:
            assembled(runtime)
    assert caught.value.extra["reason"] == "recovery_oversized"
    assert not runtime.events(EventType.COMPACTED)
