"""What each target gets: received texts untouched, its own forms for the rest, and a report of what it cannot hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.exporters.registry import FORMATS, Export, own_format
from ctxengine.engine.importers.registry import read
from ctxengine.engine.importers.transcript import ForeignSession
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.redaction.redact import redact
from tests.engine.exporters.journeys import SESSION_ID, exported, round_trip
from tests.engine.importers.accounts import only_session

PIXEL = "iVBORw0KGgo="
ODD_ARGUMENTS = (
    '{"z":1.0,"a":123456789012345678901234567890,"e":1E5,"half":"\\ud83d","nul":"\\u0000"}'
)
MESSAGES = (
    '{"model":"claude-sonnet-4-6","system":"Be kind.","tools":[{"name":"look","description":"Looks.",'
    '"input_schema":{"type":"object","properties":{"q":{"type":"string"}}}}],"messages":['
    '{"role":"user","content":[{"type":"text","text":"See","cache_control":{"type":"ephemeral"}},'
    f'{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{PIXEL}"}}}}]}},'
    '{"role":"assistant","content":[{"type":"thinking","thinking":"secret thought","signature":"sig"},'
    '{"type":"text","text":"First."},'
    f'{{"type":"tool_use","id":"toolu_1","name":"look","input":{ODD_ARGUMENTS}}},'
    '{"type":"text","text":"Then."},'
    '{"type":"tool_use","id":"toolu_2","name":"look","input":{}}]},'
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"seen"},'
    '{"type":"tool_result","tool_use_id":"toolu_2","content":"blind","is_error":true}]},'
    '{"role":"assistant","content":[{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}},'
    '{"type":"text","text":"Done."}],"stop_reason":"end_turn"}]}'
)  # fmt: skip


def session_of(text: str) -> ForeignSession:
    return only_session(read(text, name="given"))


def lost(out: Export) -> dict[str, int]:
    return {line.code: line.items for line in out.left_out}


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


def spans_of(out: Export) -> list[dict[str, Any]]:
    (resource,) = json.loads(out.text)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    spans: list[dict[str, Any]] = scope["spans"]
    return spans


def test_messages_keep_their_own_bytes() -> None:
    out = exported(session_of(MESSAGES), "anthropic_messages")
    assert ODD_ARGUMENTS in out.text
    assert '"cache_control":{"type":"ephemeral"}' in out.text
    body = json.loads(out.text)
    assert list(body) == ["model", "system", "tools", "messages"]
    assert body["system"] == "Be kind."
    assert [tool["name"] for tool in body["tools"]] == ["look"]
    results = body["messages"][2]["content"]
    assert [block["tool_use_id"] for block in results] == ["toolu_1", "toolu_2"]
    assert lost(out) == {}


@pytest.mark.parametrize("format", FORMATS)
def test_reasoning_is_in_no_export(format: str) -> None:
    out = exported(session_of(MESSAGES), format)
    assert "secret thought" not in out.text and "signature" not in out.text


def test_chat_gets_what_it_can_hold_and_the_report_says_the_rest() -> None:
    out = exported(session_of(MESSAGES), "openai_chat")
    system, user, answer, *results, last = json.loads(out.text)["messages"]
    assert system == {"role": "system", "content": "Be kind."}
    assert user["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PIXEL}"
    assert [part["text"] for part in answer["content"]] == ["First.", "Then."]
    assert answer["tool_calls"][0]["function"]["arguments"] == ODD_ARGUMENTS
    assert [(r["tool_call_id"], r["content"]) for r in results] == [
        ("toolu_1", "seen"),
        ("toolu_2", "blind"),
    ]
    assert last["content"] == "Done."
    assert lost(out) == {"error_flag": 1, "foreign_part": 1, "order": 1}
    (order,) = [line for line in out.left_out if line.code == "order"]
    assert order.sequences == (2,) and "calls" in order.detail


def test_spans_carry_the_names_of_the_conventions() -> None:
    usage = '"usage":{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":7,"output_tokens":5}'
    response = (
        '{"type":"message","role":"assistant","model":"claude-sonnet-4-6-x","stop_reason":"end_turn",'
        f'"content":[{{"type":"text","text":"Hello."}}],{usage}}}'
    )
    request = (
        '{"model":"claude-sonnet-4-6","system":"S","messages":[{"role":"user","content":"Hi"}]}'
    )
    pair = f'{{"request":{request},"response":{response}}}'
    session = session_of(f"[{pair}]")
    root, call = spans_of(exported(session, "otel_genai"))
    assert root["traceId"] == call["traceId"] == SESSION_ID
    assert call["parentSpanId"] == root["spanId"] and len(root["spanId"]) == 16
    assert attributes(root)["gen_ai.operation.name"] == "invoke_agent"
    named = attributes(call)
    assert named["gen_ai.operation.name"] == "chat"
    assert named["gen_ai.provider.name"] == "anthropic"
    assert named["gen_ai.request.model"] == "claude-sonnet-4-6"
    assert named["gen_ai.response.model"] == "claude-sonnet-4-6-x"
    assert named["gen_ai.conversation.id"] == SESSION_ID
    assert named["gen_ai.usage.input_tokens"] == "50"
    assert named["gen_ai.usage.output_tokens"] == "5"
    assert named["gen_ai.usage.cache_read.input_tokens"] == "40"
    assert named["gen_ai.usage.cache_write.input_tokens"] == "7"
    assert named["gen_ai.usage.cache_creation.input_tokens"] == "7"
    assert json.loads(named["gen_ai.system_instructions"]) == [{"type": "text", "content": "S"}]
    assert json.loads(named["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Hi"}]}
    ]
    (output,) = json.loads(named["gen_ai.output.messages"])
    assert (output["role"], output["finish_reason"]) == ("assistant", "stop")
    back = session_of(exported(session, "otel_genai").text).entries[-1].usage
    assert back is not None
    assert (back.fresh, back.cache_read, back.cache_write, back.output) == (3, 40, 7, 5)


def test_tools_and_instructions_come_back_from_spans() -> None:
    session = session_of(MESSAGES)
    back = session_of(exported(session, "otel_genai").text)
    assert [tool.name for tool in back.tools] == ["look"]
    assert json.loads(back.tools[0].input_schema)["properties"] == {"q": {"type": "string"}}
    assert back.instructions == "Be kind."


def test_each_span_of_a_small_session_has_its_whole_history() -> None:
    calls = [
        attributes(span) for span in spans_of(exported(session_of(MESSAGES), "otel_genai"))[1:]
    ]
    roles = [[m["role"] for m in json.loads(c["gen_ai.input.messages"])] for c in calls]
    assert roles == [["user"], ["user", "assistant", "tool", "tool"]]


def test_images_and_files_come_back_from_spans_in_messages_and_results() -> None:
    body = {
        "model": "claude-sonnet-4-6",
        "system": "",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                    {
                        "type": "document",
                        "title": "notes.pdf",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
                    },
                ],
            },
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "shot", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [
                            {"type": "text", "text": "a screen"},
                            {
                                "type": "image",
                                "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
                            },
                        ],
                    }
                ],
            },
        ],
    }  # fmt: skip
    journey = round_trip(session_of(json.dumps(body)), "otel_genai")
    assert journey.after == journey.before
    assert any("ImagePart:image/png" in part for part in journey.after[-1].parts)
    chat = exported(session_of(json.dumps(body)), "openai_chat")
    assert lost(chat) == {"media": 1}


def test_a_summary_stays_one_where_there_is_a_place_for_it() -> None:
    body = {
        "model": "claude-sonnet-4-6",
        "system": "",
        "messages": [
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": [{"type": "compaction", "content": "What was before."}]},
            {"role": "user", "content": "And now?"},
        ],
    }  # fmt: skip
    session = session_of(json.dumps(body))
    assert round_trip(session, "anthropic_messages").after[1].kind == "summary"
    assert round_trip(session, "otel_genai").after[1].kind == "summary"
    assert lost(exported(session, "openai_chat"))["foreign_part"] == 1


def test_a_result_that_an_import_made_up_is_left_out_and_made_up_again() -> None:
    calls = [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    ]
    body = {
        "messages": [
            {"role": "user", "content": "Do."},
            {"role": "assistant", "content": None, "tool_calls": calls},
        ]
    }
    session = session_of(json.dumps(body))
    out = exported(session, "openai_chat")
    assert lost(out) == {"repaired_result": 1}
    assert [m["role"] for m in json.loads(out.text)["messages"]] == ["user", "assistant"]
    back = session_of(out.text)
    assert [entry.synthetic for entry in back.entries] == [False, False, True]


def test_a_call_id_that_two_calls_share_goes_out_as_it_came() -> None:
    def step(arguments: str) -> list[dict[str, Any]]:
        call = {"id": "same", "type": "function", "function": {"name": "f", "arguments": arguments}}
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "same", "content": f"of {arguments}"},
        ]

    body = {"messages": [{"role": "user", "content": "x"}, *step('{"n":1}'), *step('{"n":2}')]}
    journey = round_trip(session_of(json.dumps(body)))
    assert journey.after == journey.before
    assert journey.out.text.count('"same"') == 4


def test_what_is_no_json_to_others_is_written_so_that_it_is() -> None:
    text = (
        '{"model":"m","system":"","messages":[{"role":"user","content":"x"},'
        '{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":NaN}}]},'
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"y"}]}]}'
    )
    out = exported(session_of(text), "anthropic_messages")
    (block,) = json.loads(out.text, parse_constant=pytest.fail)["messages"][1]["content"]
    assert block["input"] == '{"a":NaN}'


def test_half_characters_and_zeros_survive() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "a\0b\ud83d c"}]})
    for format in FORMATS:
        journey = round_trip(session_of(body), format)
        assert journey.after[0].parts == ("text:a\0b\ud83d c",)


def test_secrets_are_masked_and_the_rest_keeps_its_bytes() -> None:
    key = "sk-" + "a1b2c3d4" * 4
    arguments = json.dumps({"api_key": "Zx81" * 5, "n": 1.0, "note": f"use {key}"})
    body = {
        "messages": [
            {"role": "system", "content": f"The key is {key}."},
            {"role": "user", "content": "Log in."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "login", "arguments": arguments}}
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": f"password: {'q7w8' * 4}\nok \\ fine"},
        ]
    }  # fmt: skip
    session = session_of(json.dumps(body))
    for format in FORMATS:
        out = exported(session, format, mask=lambda text: redact(text).text)
        assert key not in out.text and "Zx81" not in out.text and "q7w8" not in out.text, format
        assert lost(out)["secret"] >= 3
        json.loads(out.text)
        assert [s.name for s in round_trip(session_of(out.text), format).after][1] == "login"
        assert key in exported(session, format).text
    masked = exported(session, "openai_chat", mask=lambda text: redact(text).text)
    call = json.loads(masked.text)["messages"][2]["tool_calls"][0]["function"]
    assert '"n": 1.0' in call["arguments"]


def test_an_object_whose_member_names_a_secret_is_masked_too() -> None:
    text = (
        '{"model":"m","system":"","messages":[{"role":"user","content":"x"},{"role":"assistant","content":'
        '[{"type":"tool_use","id":"t","name":"f","input":{"password":"Hunter2Hunter2"}}]}]}'
    )
    out = exported(session_of(text), "anthropic_messages", mask=lambda given: redact(given).text)
    assert "Hunter2" not in out.text
    assert json.loads(out.text)["messages"][1]["content"][0]["input"].keys() == {"password"}


def test_the_own_family_follows_from_the_forms_of_the_contents() -> None:
    assert own_format([ContentFormat.ANTHROPIC, ContentFormat.BLOCKS]) == "anthropic_messages"
    assert own_format([ContentFormat.OPENAI_CHAT, ContentFormat.TEXT]) == "openai_chat"
    assert own_format([ContentFormat.OPENAI_RESPONSES]) == own_format([]) == "otel_genai"
