"""Events of OpenHands' SDK in the forms its versions gave them: nothing that was asked or observed goes unseen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.importers.transcript import Entry, ForeignSession
from ctxengine.engine.items import FilePart, ImagePart
from tests.engine.importers.accounts import (
    assert_sound,
    codes,
    items_of,
    only_session,
    read_records,
    text_of,
    types,
)

PIXEL = "aGk="


def event(kind: str, source: str, **more: Any) -> dict[str, Any]:
    return {"id": "e", "timestamp": "2025-10-01T10:00:00", "source": source, "kind": kind, **more}


def says(*parts: dict[str, Any]) -> dict[str, Any]:
    return event("MessageEvent", "user", llm_message={"role": "user", "content": list(parts)})


def acts(**more: Any) -> dict[str, Any]:
    told = {"thought": [], "llm_response_id": "r", "tool_name": "bash", "tool_call_id": "c"}
    return event("ActionEvent", "agent", **told, **more)


def observes(observation: Any, kind: str = "ObservationEvent", **more: Any) -> dict[str, Any]:
    told = {"tool_name": "bash", "tool_call_id": "c", "observation": observation}
    return event(kind, "environment", **(told | more))


FLAT = {"id": "c", "name": "bash", "arguments": '{"command":"ls"}'}


def session_of(*events: dict[str, Any]) -> ForeignSession:
    transcript = read_records([says({"type": "text", "text": "Go."}), *events])
    assert transcript.format == "openhands_events"
    assert_sound(transcript)
    return only_session(transcript)


@pytest.mark.parametrize(
    "told",
    [
        {"tool_call": FLAT, "action": {"command": "no"}},
        {"tool_call": {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}},
        {"tool_call": {"function": {"name": "bash", "arguments": '{"command":"ls"}'}}},
        {"tool_call": {"id": "c", "function": {"name": None, "arguments": None}}, "action": {"command": "ls", "kind": "X"}},
        {"tool_call": {"id": None, "name": None, "function": None, "arguments": None}, "action": {"command": "ls"}},
        {"tool_call": None, "action": {"command": "ls", "kind": "ExecuteBashAction"}},
        {"action": {"command": "ls", "kind": "ExecuteBashAction"}},
    ],
)  # fmt: skip
def test_a_call_is_read_in_every_form(told: dict[str, Any]) -> None:
    session = session_of(acts(**told), observes({"content": "a.py"}))
    assert types(session) == ["user", "assistant", "result"]
    (call,) = items_of(session.entries[1])
    assert (call.name, call.call_id) == ("bash", "c")
    assert json.loads(call.arguments or "") == {"command": "ls"}
    assert not session.entries[2].synthetic


def test_a_call_that_nothing_names_stands_in_the_report() -> None:
    action = event("ActionEvent", "agent", thought=[{"type": "text", "text": "I look."}],
                   llm_response_id="r", tool_call={"arguments": "MARK"})  # fmt: skip
    session = session_of(action)
    assert types(session) == ["user", "assistant"]
    assert ["MARK" in repair.raw for repair in session.repairs] == [True]


OBSERVED: list[tuple[Any, dict[str, Any], str, bool]] = [
    ({"content": [{"type": "text", "text": "out"}], "is_error": False}, {}, "out", False),
    ({"content": "out"}, {}, "out", False),
    ({"output": "out", "exit_code": 0, "error": False, "timeout": False}, {}, "out", False),
    ({"output": "out", "error": True}, {}, "out", True),
    ({"content": None, "output": "out", "error": None}, {}, "out", False),
    ({"content": [], "output": "out"}, {}, "out", False),
    ({"content": "", "output": "out"}, {}, "out", False),
    ({"content": None, "error": "bad"}, {}, "bad", True),
    ({"content": None}, {"error": "bad"}, "bad", True),
    ({"content": "out"}, {"error": "bad"}, "outbad", True),
    ({"content": "out", "output": "out"}, {}, "out", False),
    ({"message": "out"}, {}, "out", False),
    ({"content": [{"type": "text", "text": "out"}], "message": "done"}, {}, "out", False),
    ("out", {}, "out", False),
    (None, {"error": "bad"}, "bad", True),
    (None, {"error": None, "rejection_reason": "no"}, "no", True),
]


@pytest.mark.parametrize(("observation", "more", "text", "failed"), OBSERVED)
def test_an_observation_is_read_in_every_form(
    observation: Any, more: dict[str, Any], text: str, failed: bool
) -> None:
    session = session_of(acts(tool_call=FLAT), observes(observation, **more))
    result: Entry = session.entries[-1]
    assert (types(session)[-1], text_of(result), result.is_error) == ("result", text, failed)


def test_what_nobody_reads_of_an_observation_is_the_result_and_reported() -> None:
    grep = {"kind": "GrepObservation", "matches": ["a.py: MARK"], "count": 1, "is_error": False}
    session = session_of(acts(tool_call=FLAT), observes(grep))
    assert "MARK" in text_of(session.entries[-1])
    assert "unread_observation" in codes(session)
    beside = session_of(acts(tool_call=FLAT), observes({"content": "x", "metadata": {"pid": 1}}))
    assert "observation_facts" in codes(beside)
    empty = session_of(acts(tool_call=FLAT), observes({"kind": "X", "content": [], "files": []}))
    assert (text_of(empty.entries[-1]), "unread_observation" in codes(empty)) == ("", False)


def media(entry: Entry) -> list[tuple[str | None, str | None]]:
    parts = [part for item in items_of(entry) for part in item.parts]
    shown = [part for part in parts if isinstance(part, ImagePart | FilePart)]
    return [(part.media_type, getattr(part, "url", None)) for part in shown]


def test_each_address_of_an_image_is_an_image() -> None:
    urls = [f"data:image/png;base64,{PIXEL}", "https://x/y.png", f"data:image/jpeg;base64,{PIXEL}"]
    transcript = read_records([says({"type": "image", "image_urls": urls})])
    entry = only_session(transcript).entries[0]
    assert len(media(entry)) == 3
    assert '"part"' not in entry.body and "base64," not in entry.body
    assert_sound(transcript)


@pytest.mark.parametrize(
    "image",
    [
        {"type": "image", "image_urls": [None, f"data:image/png;base64,{PIXEL}"]},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "image", "source": f"data:image/png;base64,{PIXEL}"},
        {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": PIXEL},
        {"type": "image", "base64": PIXEL, "mime_type": "image/png"},
        {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{PIXEL}"},
            "image": None,
        },
        {"type": "image_url", "image_url": f"data:image/png;base64,{PIXEL}"},
    ],
)
def test_the_data_of_an_image_is_taken_out_of_every_form(image: dict[str, Any]) -> None:
    transcript = read_records([says(image)])
    entry = only_session(transcript).entries[0]
    assert [kind for kind, _ in media(entry)] == ["image/png"]
    assert PIXEL not in "".join(text for text in entry.body.split('"data"')[:1])
    assert_sound(transcript)


def test_a_screen_is_an_image_of_the_result() -> None:
    session = session_of(acts(tool_call=FLAT), observes({"output": "x", "screenshot_data": PIXEL}))
    assert media(session.entries[-1]) == [("image/png", None)]


def test_the_first_versions_named_classes_with_their_path() -> None:
    action = acts(tool_call=FLAT) | {"kind": "openhands.sdk.event.llm_convertible.ActionEvent"}
    answer = observes({"output": "a.py"}, "openhands.sdk.event.llm_convertible.ObservationEvent")
    session = session_of(action, answer)
    assert types(session) == ["user", "assistant", "result"]


@pytest.mark.parametrize("prompt", ["Be good.", {"type": "text", "text": "Be good."}])
def test_the_systems_event_gives_instructions_and_tools(prompt: Any) -> None:
    tools = [
        {"type": "function", "function": {"name": "bash", "description": "Run.", "parameters": {"type": "object"}}},
        {"name": "think", "description": "Think."},
        {"kind": "unnamed"},
    ]  # fmt: skip
    system = event("SystemPromptEvent", "agent", system_prompt=prompt, tools=tools,
                   dynamic_context={"type": "text", "text": "Today."})  # fmt: skip
    session = session_of(system, acts(tool_call=FLAT), observes({"output": "x"}))
    assert session.instructions == "Be good.\n\nToday."
    declared = [tool.name for tool in session.tools if not tool.synthesised]
    assert declared == ["bash", "think"]


def test_a_result_finds_its_call_by_the_action_it_names() -> None:
    first = acts(tool_call={**FLAT, "id": "x"}) | {"id": "one"}
    second = acts(tool_call={**FLAT, "id": "y"}) | {"id": "two"}
    answers = [
        observes({"output": key}, tool_call_id=None, action_id=key) for key in ("two", "one")
    ]
    session = session_of(first, second, *answers)
    told = [(entry.call_id, text_of(entry)) for entry in session.entries if entry.type == "result"]
    assert told == [("x", "one"), ("y", "two")]


def test_an_older_result_finds_its_call_by_the_event_that_caused_it() -> None:
    def older(number: int, source: str, **told: Any) -> dict[str, Any]:
        return {"id": number, "timestamp": "2025-01-01T10:00:00", "source": source, **told}

    told = {"tool_call_id": "a", "function_name": "bash"}
    transcript = read_records(
        [
            older(1, "user", action="message", args={"content": "Go."}, observation=None),
            older(2, "agent", action="run", args={"command": "ls"}, tool_call_metadata=told),
            older(3, "agent", observation="error", content="bad", cause=2, action=None),
        ]
    )
    assert_sound(transcript)
    session = only_session(transcript)
    assert types(session) == ["user", "assistant", "result"]
    result = session.entries[-1]
    assert (text_of(result), result.is_error, result.synthetic) == ("bad", True, False)


def test_a_part_that_stands_in_the_place_of_a_list_is_read() -> None:
    part = {"type": "text", "text": "Done."}
    answer = {"role": "assistant", "content": part}
    session = session_of(
        {**says({"type": "text", "text": "More."}), "extended_content": part},
        acts(tool_call=FLAT) | {"thought": {"type": "text", "text": "I look."}},
        observes({"content": part}),
        event("MessageEvent", "agent", llm_message=answer),
    )
    assert types(session) == ["user", "user", "input", "assistant", "result", "assistant"]
    told = [text_of(entry) for entry in session.entries[2:]]
    assert told == ["Done.", "I look.", "Done.", "Done."]


def test_an_older_observation_beside_calls_is_kept_in_every_form() -> None:
    told = {"id": 2, "timestamp": "2025-01-01T10:00:00", "source": "environment"}
    session = session_of(
        {**told, "observation": "browse", "content": [{"url": "MARK"}], "extras": {}}
    )
    assert types(session) == ["user", "input"]
    assert "MARK" in text_of(session.entries[1])
