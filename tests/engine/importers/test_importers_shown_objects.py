"""Messages written as Python shows an object, and reasoning in the members that chat proxies add."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.repr_message import message_of_repr

clean = st.text(st.characters(exclude_categories=["Cs"]))


def shown(role: str, content: str | None, **more: Any) -> str:
    rest = "".join(f" {name}={value!r}" for name, value in more.items())
    tail = " metrics=Metrics(tokens=1, timer=<x.Timer object at 0x3>) created_at=1749650492"
    return f"role='{role}' content={content!r}{rest}{tail}"


@given(
    content=st.none() | clean,
    arguments=clean,
    answer=clean,
)
def test_a_shown_message_says_what_the_object_said(
    content: str | None, arguments: str, answer: str
) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "t", "arguments": arguments}}
    node = message_of_repr(shown("assistant", content, tool_calls=[call], thinking=None))
    assert node is not None
    told = {"role": "assistant", "content": content, "tool_calls": [call]}
    assert node.value() == {name: value for name, value in told.items() if value is not None}
    result = message_of_repr(shown("tool", answer, tool_call_id="c1", tool_name="t"))
    assert result is not None
    assert result.value() == {
        "role": "tool",
        "content": answer,
        "tool_call_id": "c1",
        "tool_name": "t",
    }


@given(st.one_of(clean, clean.map(lambda text: f"role='user' content={text}")))
def test_any_other_text_is_left_a_text(text: str) -> None:
    node = message_of_repr(text)
    assert node is None or "content" in node.value() or node.value() == {"role": "user"}


def test_a_cut_off_message_is_left_a_text() -> None:
    whole = shown("user", "hello", images=[1, 2])
    assert message_of_repr(whole) is not None
    assert message_of_repr(whole[: whole.index("2]")]) is None


def test_thinking_blocks_of_a_chat_proxy_stay_behind() -> None:
    block = {"type": "thinking", "thinking": "the secret plan", "signature": "c2ln"}
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Gone.", "thinking_blocks": [block]},
    ]
    (session,) = read(json.dumps({"messages": messages}), name="x.json").sessions
    assert "secret plan" not in "".join(entry.body for entry in session.entries)
    assert "secret plan" not in "".join(repair.raw for repair in session.repairs)
    assert any(repair.code == "reasoning" for repair in session.repairs)
