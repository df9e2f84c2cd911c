"""Anthropic Messages bodies in detail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.errors import WireInvalid
from ctxengine.engine.wire.anthropic import AnthropicRenderer
from ctxengine.engine.wire.base import (
    Fragment,
    Marker,
    WireCall,
    WireFile,
    WireMessage,
    WireResult,
    WireText,
)
from tests.engine.wire.conversations import NO_PREFIX, PARAMS, PIXEL, PREFIX, REDACTED, THINKING

RENDERER = AnthropicRenderer()
ASK = WireMessage("user", (WireText("Check the build."),))
CALL = WireCall("t1", "look", '{ "cmd":"make","n":1.0}')
STEP = WireMessage("assistant", (THINKING, REDACTED, CALL))
RESULT = WireMessage("user", (WireResult("t1", "look", (WireText("ok"),)),))


def rendered(*messages: WireMessage) -> tuple[Fragment, ...]:
    return tuple(f for message in messages for f in RENDERER.fragments(message))


def body(*messages: WireMessage, markers: tuple[Marker, ...] = ()) -> bytes:
    return RENDERER.body(PREFIX, rendered(*messages), PARAMS, markers)


def test_keys_stand_in_prefix_order_without_spaces() -> None:
    assert list(json.loads(body(ASK))) == ["model", "max_tokens", "tools", "system", "messages"]
    assert body(ASK).endswith(
        b'"messages":[{"role":"user","content":[{"type":"text","text":"Check the build."}]}]}'
    )
    bare = RENDERER.body(NO_PREFIX, rendered(ASK), PARAMS)
    assert list(json.loads(bare)) == ["model", "max_tokens", "messages"]


def test_thinking_goes_back_byte_for_byte_in_front_of_its_call() -> None:
    text = body(ASK, STEP, RESULT).decode()
    expected = f'{THINKING.raw},{REDACTED.raw},{{"type":"tool_use","id":"t1"'
    assert expected in text
    assert CALL.arguments in text


def test_a_step_that_only_thought_is_not_sent() -> None:
    assert RENDERER.fragments(WireMessage("assistant", (THINKING,))) == ()


def test_results_come_together_in_call_order_ahead_of_text() -> None:
    results = WireMessage(
        "user",
        (
            WireText("And now?"),
            WireResult("w1", "look", (WireText("3 C"),)),
            WireResult("w2", "look", (WireText("21 C"), PIXEL), is_error=True),
        ),
    )
    calls = WireMessage("assistant", (WireCall("w1", "look", "{}"), WireCall("w2", "look", "{}")))
    messages = json.loads(body(ASK, calls, results))["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    first, second, text = messages[2]["content"]
    assert (first["tool_use_id"], second["tool_use_id"]) == ("w1", "w2")
    assert second["is_error"] is True
    assert second["content"][1]["type"] == "image"
    assert text == {"type": "text", "text": "And now?"}


def test_neighbours_of_one_role_become_one_message() -> None:
    messages = json.loads(body(ASK, ASK))["messages"]
    assert len(messages) == 1
    assert len(messages[0]["content"]) == 2


def test_documents_are_pdf_or_a_note() -> None:
    parts = (
        WireFile("application/pdf", base64="JVBE", name="a.pdf"),
        WireFile("text/csv", base64="YSxi"),
        WireFile(None, url="https://example.org/b.pdf"),
    )
    content = json.loads(body(WireMessage("user", parts)))["messages"][0]["content"]
    assert [block["type"] for block in content] == ["document", "text", "document"]
    assert content[0]["title"] == "a.pdf"


def test_positions_count_blocks() -> None:
    assert [f.positions for f in rendered(ASK, STEP)] == [1, 3]


def controls(sent: bytes) -> list[tuple[str, Any]]:
    request = json.loads(sent)
    blocks = [("tools", b) for b in request["tools"]] + [("system", b) for b in request["system"]]
    blocks += [(b["type"], b) for m in request["messages"] for b in m["content"]]
    return [(where, b["cache_control"]) for where, b in blocks if "cache_control" in b]


def test_markers_stand_on_the_last_tool_system_text_and_block() -> None:
    markers = (
        Marker("after_tools", ttl="1h"),
        Marker("after_system", ttl="1h"),
        Marker("carried_history", 0),
        Marker("run", 2),
    )
    sent = body(ASK, STEP, RESULT, markers=markers)
    short, long = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
    assert controls(sent) == [
        ("tools", long),
        ("system", long),
        ("text", short),
        ("tool_result", short),
    ]
    assert "cache_control" in json.loads(sent)["tools"][-1]


def test_a_marker_steps_back_from_reasoning_to_the_block_before() -> None:
    trailing = WireMessage("assistant", (WireText("Done."), THINKING))
    parts = rendered(ASK, trailing)
    assert [f.markable for f in parts] == [True, True, False]
    sent = RENDERER.body(PREFIX, parts, PARAMS, (Marker("run", 2),))
    assert controls(sent) == [("text", {"type": "ephemeral"})]
    assert THINKING.raw.encode() in sent


def test_two_markers_on_one_block_become_the_longer_one() -> None:
    sent = body(ASK, markers=(Marker("run", 0), Marker("carried_history", 0, ttl="1h")))
    assert controls(sent) == [("text", {"type": "ephemeral", "ttl": "1h"})]


@pytest.mark.parametrize(
    ("markers", "says"),
    [
        (tuple(Marker("run", n) for n in range(5)), "5 cache markers"),
        ((Marker("after_tools"), Marker("run", 0, ttl="1h")), "5m, 1h"),
        ((Marker("run", 9),), "fragment 9"),
        ((Marker("run"),), "'run'"),
    ],
)
def test_markers_that_the_api_refuses_are_refused_here(
    markers: tuple[Marker, ...], says: str
) -> None:
    with pytest.raises(WireInvalid) as refused:
        body(*[ASK] * 5, markers=markers)
    assert says in str(refused.value)
