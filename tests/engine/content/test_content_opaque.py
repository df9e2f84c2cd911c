"""Reasoning comes out of a body byte for byte, and nothing else changes."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.content.decode import decode, strip_opaque
from ctxengine.engine.items import ContentFormat, TextPart

ANTHROPIC = ContentFormat.ANTHROPIC
CHAT = ContentFormat.OPENAI_CHAT
RESPONSES = ContentFormat.OPENAI_RESPONSES

THINKING = '{"type":"thinking", "thinking":"", "signature":"SIG=="}'
REDACTED = '{"data":"BLOB==","type":"redacted_thinking"}'
TEXT = '{"type":"text","text":"a, \\"]\\ud83d"}'
CALL = '{"type":"tool_use","id":"t1","name":"sh","input":{"n":1.0}}'


def test_blocks_leave_with_their_exact_bytes_and_places() -> None:
    body = f"[ {THINKING} , {REDACTED},\n{TEXT}, {THINKING},{TEXT} ,{CALL}]"
    stripped = strip_opaque(ANTHROPIC, body, role="assistant")
    assert stripped.body == f"[ {TEXT}, {TEXT} ,{CALL}]"
    assert [o.raw for o in stripped.opaque] == [THINKING, REDACTED, THINKING]
    assert [(o.before, o.before_part) for o in stripped.opaque] == [(0, 0), (0, 0), (0, 1)]


def test_a_block_behind_the_last_text_stands_before_the_call() -> None:
    stripped = strip_opaque(ANTHROPIC, f"[{TEXT},{THINKING},{CALL},{REDACTED}]")
    assert [(o.before, o.before_part) for o in stripped.opaque] == [(1, 0), (2, 0)]


def test_a_body_of_reasoning_alone_becomes_an_empty_array() -> None:
    stripped = strip_opaque(ANTHROPIC, f"[ {THINKING}]")
    assert stripped.body == "[ ]"
    assert decode(ANTHROPIC, stripped.body).items == ()


def test_a_body_without_reasoning_is_returned_untouched() -> None:
    body = f"[ {TEXT} ]"
    assert strip_opaque(ANTHROPIC, body).body is body


def test_chat_reasoning_members_come_out_as_written() -> None:
    body = (
        '{"role":"assistant" , "reasoning_content": "h\\u00e4", "content":"Hi",\n "reasoning":null}'
    )
    stripped = strip_opaque(CHAT, body)
    assert stripped.body == '{"role":"assistant" , "content":"Hi",\n "reasoning":null}'
    (block,) = stripped.opaque
    assert block.raw == '{"reasoning_content": "h\\u00e4"}'
    assert (block.before, block.kind, block.api) == (0, "reasoning_content", "openai")


def test_signed_thinking_in_a_routers_own_fields_comes_out_and_other_fields_stay() -> None:
    signed = (
        '"provider_specific_fields": {"citations":null, "thinking_blocks":'
        '[{"type":"thinking","thinking":"hm","signature":"SIG=="}]}'
    )
    body = f'{{"role":"assistant","content":"Hi", {signed}}}'
    stripped = strip_opaque(CHAT, body)
    assert "SIG" not in stripped.body and json.loads(stripped.body)["content"] == "Hi"
    (block,) = stripped.opaque
    assert (block.raw, block.kind) == (f"{{{signed}}}", "provider_specific_fields")
    for fields in ('{"citations":[1]}', '{"thinking_blocks":[]}', "{}", "null", "[1]", '"x"'):
        plain = f'{{"role":"assistant","content":"Hi","provider_specific_fields":{fields}}}'
        assert strip_opaque(CHAT, plain).body == plain
        assert strip_opaque(CHAT, plain).opaque == ()


def test_reasoning_parts_inside_chat_content_come_out_too() -> None:
    body = (
        '{"role":"assistant","content":[{"type":"thinking","thinking":[]},'
        ' {"type":"text","text":"x"}]}'
    )
    stripped = strip_opaque(CHAT, body)
    assert stripped.body == '{"role":"assistant","content":[{"type":"text","text":"x"}]}'
    assert decode(CHAT, stripped.body).items[0].parts == (TextPart("x"),)


def test_responses_reasoning_names_the_item_it_produced() -> None:
    body = (
        '[{"role":"user","content":"Go"},'
        '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"OPAQUE1"},'
        '{"type":"function_call","id":"fc_1","call_id":"c1","name":"deploy","arguments":"{}"}]'
    )
    stripped = strip_opaque(RESPONSES, body)
    assert "OPAQUE1" not in stripped.body
    (block,) = stripped.opaque
    assert (block.before, block.follower_id) == (1, "fc_1")


blocks = st.lists(
    st.sampled_from([THINKING, REDACTED, TEXT, CALL, '{"type":"server_tool_use","id":"s"}']),
    max_size=8,
)
blank = st.sampled_from(["", " ", "\n\t "])


@given(blocks, blank)
def test_stripping_changes_no_item_and_loses_no_byte(chosen: list[str], space: str) -> None:
    body = "[" + space + f"{space},{space}".join(chosen) + space + "]"
    stripped = strip_opaque(ANTHROPIC, body, role="assistant")
    assert decode(ANTHROPIC, stripped.body, role="assistant") == decode(
        ANTHROPIC, body, role="assistant"
    )
    reasoning = [block for block in chosen if block in (THINKING, REDACTED)]
    assert [o.raw for o in stripped.opaque] == reasoning
    rest = [json.loads(block) for block in chosen if block not in (THINKING, REDACTED)]
    assert json.loads(stripped.body) == rest
    assert strip_opaque(ANTHROPIC, stripped.body).opaque == ()


@given(blocks)
def test_places_rebuild_the_original_order(chosen: list[str]) -> None:
    body = "[" + ",".join(chosen) + "]"
    stripped = strip_opaque(ANTHROPIC, body, role="assistant")
    left = list(stripped.opaque)
    order: list[str] = []
    items = decode(ANTHROPIC, stripped.body, role="assistant").items
    for item in items:
        for part in range(max(1, len(item.parts))):
            while left and (left[0].before, left[0].before_part) == (item.ordinal, part):
                order.append(left.pop(0).raw)
            order.append("said")
    order += [block.raw for block in left]
    assert order == [block if block in (THINKING, REDACTED) else "said" for block in chosen]
