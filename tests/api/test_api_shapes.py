"""Shapes read bodies strictly and hand foreign JSON on untouched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.bodies import node_of
from api.problems import Problem
from api.shapes.base import FieldErrors
from api.shapes.containers import ListOf, MapOf, Member, Record
from api.shapes.content import Message, RawBody, RawObject, ResultContent
from api.shapes.scalars import AnyText, Flag, Identifier, Moment, Number, Text, Whole
from api.v1.assemble import ASSEMBLE
from api.v1.responses import TAKE_RESPONSE, TakeResponseWrite
from api.v1.runs import START_RUN
from api.v1.sessions import OPEN_SESSION, OpenSessionWrite
from api.v1.tool_results import INPUT, TOOL_RESULTS, TakeToolResultsWrite
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import parse
from ctxengine.service import specs

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def faults_of(shape: Any, text: str) -> list[tuple[str, str]]:
    with pytest.raises(FieldErrors) as caught:
        shape.read(parse(text), "")
    return [(fault.code, fault.field) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("shape", "wrong"),
    [
        (Text(), ["1", "null", "[]", r'"\u0000"', r'"\ud800"', "true"]),
        (Text(minLength=2, maxLength=3), ['"a"', '"abcd"']),
        (AnyText(), ["1", "{}"]),
        (Whole(), ["1.0", "1e3", '"1"', "true", "9007199254740992", "-9007199254740992", "NaN"]),
        (Whole(minimum=100, maximum=599), ["99", "600", "1" * 5000]),
        (Number(), ["NaN", "Infinity", "-Infinity", "1e999", '"1"', "false"]),
        (Flag(), ["0", "1", '"true"', "null"]),
        (Identifier(), ['"x"', '"{00000000-0000-0000-0000-000000000000}"', "1"]),
        (
            Moment(),
            [
                '"2026-11-29"',
                '"2026-11-29T10:00:00"',
                '"0001-01-01T00:00:00+14:00"',
                "1764400000",
                '"x"',
            ],
        ),
        (Message(), ["1", "{}", "true"]),
        (RawObject(), ["[]", '"x"', "1"]),
        (ListOf(Text(), least=1), ["[]", "{}", "[1]"]),
        (MapOf(Whole()), ["[]", '{"a":"1"}', '{"a":1,"a":2}', r'{"\u0000":1}', r'{"\ud800":1}']),
    ],
)
def test_a_value_of_another_kind_or_beyond_its_bounds_is_refused(
    shape: Any, wrong: list[str]
) -> None:
    for text in wrong:
        assert faults_of(shape, text), text


def test_values_that_fit_come_through() -> None:
    assert Whole().read(parse("9007199254740991"), "") == 2**53 - 1
    assert Number().read(parse("-1.5e-3"), "") == -0.0015
    assert (
        Moment().read(parse('"2026-03-29T01:00:30Z"'), "").isoformat()
        == "2026-03-29T01:00:30+00:00"
    )
    assert AnyText().read(parse(r'"a\u0000\ud83d"'), "") == "a\0\ud83d"


def test_every_fault_of_a_body_is_reported_at_once_with_its_path() -> None:
    shape = Record(
        Member("name", Text(), required=True),
        Member(
            "lines", ListOf(Record(Member("text", Text(), required=True), Member("n", Whole())))
        ),
    )
    text = (
        '{"lines":[{"text":"a","n":"1"},{"n":2,"colour":"red"},{"text":"b","text":"c"}],"extra":1}'
    )
    assert sorted(faults_of(shape, text)) == [
        ("duplicate_field", "lines[2].text"),
        ("invalid_field", "lines[0].n"),
        ("missing_field", "lines[1].text"),
        ("missing_field", "name"),
        ("unknown_field", "extra"),
        ("unknown_field", "lines[1].colour"),
    ]


def test_an_unknown_field_outranks_a_wrong_value_and_is_named() -> None:
    with pytest.raises(FieldErrors) as caught:
        OPEN_SESSION.read(parse('{"model":{"provider":1},"colour":[]}'), "")
    problem = caught.value.problem()
    assert (problem.kind.code, problem.kind.status) == ("unknown_field", 400)
    assert problem.detail.startswith("colour: ")


def test_a_hostile_field_name_is_shown_short_and_without_control_characters() -> None:
    name = "\u001b[31m" + "x" * 1000 + "\u202e"
    with pytest.raises(FieldErrors) as caught:
        ASSEMBLE.read(parse(json.dumps({name: 1})), "")
    detail = caught.value.problem().detail
    assert len(detail) < 600
    assert "\u001b" not in detail
    assert "\u202e" not in detail


def test_null_is_the_same_as_not_sent_except_for_the_content_of_a_result() -> None:
    assert INPUT.read(parse('{"message":"x","retain":null}'), "").keys() == {"message"}
    assert faults_of(INPUT, '{"message":null}') == [("missing_field", "message")]
    read = TOOL_RESULTS.read(parse('{"results":[{"call_id":"a","content":null}]}'), "")
    content = read["results"][0]["content"]
    assert (content.format, content.raw) == (ContentFormat.TEXT, "")
    assert faults_of(TOOL_RESULTS, '{"results":[{"call_id":"a"}]}') == [
        ("missing_field", "results[0].content")
    ]


@pytest.mark.parametrize("shape", [Message(), ResultContent()])
def test_a_text_is_decoded_and_an_array_is_handed_on_as_it_stood(shape: Any) -> None:
    text = shape.read(parse(r'"a\n\u00e9\u0000\ud83d"'), "")
    assert (text.format, text.raw) == (ContentFormat.TEXT, "a\n\u00e9\0\ud83d")
    raw = '[ {"type":"text" , "text":"1.0", "b":1.0,"a":1E5, "a":2} ]'
    blocks = shape.read(parse(f"  {raw} "), "")
    assert (blocks.format, blocks.raw) == (ContentFormat.BLOCKS, raw)


@given(json_values)
def test_foreign_json_is_never_written_again(value: Any) -> None:
    raw = json.dumps({"content": value, "x": 1.0}, indent=1)
    body = f'{{"response":{raw},"usage":{raw}}}'
    spec = TakeResponseWrite().parse(node_of(body.encode())).spec
    assert spec.response_raw == raw
    assert spec.usage_raw == raw


def test_nothing_inside_a_response_or_a_schema_is_an_unknown_field() -> None:
    body = (
        '{"model":{"provider":"anthropic","name":"m"},"agent":{"name":"a","version":"1"},'
        '"tools":[{"name":"t","input_schema":{"type":"object","x-vendor":{"b":1.0,"a":2}}}]}'
    )
    spec = OpenSessionWrite().parse(node_of(body.encode()))
    assert spec.tools[0].input_schema_raw == '{"type":"object","x-vendor":{"b":1.0,"a":2}}'
    assert spec.engine == "suffix"


def test_a_response_and_an_error_exclude_each_other() -> None:
    write = TakeResponseWrite()
    for body in (b"{}", b'{"response":{"content":[]},"error":{"status":400}}'):
        with pytest.raises(FieldErrors):
            write.parse(node_of(body))
    spec = write.parse(node_of(b'{"error":{"status":400,"body":{"error":{"type":"x"}}}}')).spec
    assert (spec.error_status, spec.error_body_raw) == (400, '{"error":{"type":"x"}}')
    spec = write.parse(node_of(b'{"error":{"status":529,"body":"overloaded"}}')).spec
    assert (spec.error_status, spec.error_body_raw) == (529, "overloaded")
    assert RawBody().read(parse("[1, 2]"), "") == "[1, 2]"


def test_limits_of_the_spec_are_told_by_the_path_of_the_body() -> None:
    body = {
        "model": {"provider": "anthropic", "name": "m", "window": 5},
        "agent": {"name": "a", "version": "1"},
        "engine": "best",
        "tools": [{"name": "ok"}, {"name": "", "side_effect": "magic", "result_trust": "GOD"}],
        "policy": {"margin": 2},
    }
    with pytest.raises(FieldErrors) as caught:
        OpenSessionWrite().parse(node_of(json.dumps(body).encode()))
    assert {fault.field for fault in caught.value.faults} == {
        "engine",
        "model.window",
        "policy.margin",
        "tools[1].name",
        "tools[1].result_trust",
        "tools[1].side_effect",
    }


def test_limits_of_a_result_name_the_field_as_it_was_sent() -> None:
    body = b'{"results":[{"call_id":"","content":"x"}]}'
    with pytest.raises(FieldErrors) as caught:
        TakeToolResultsWrite().parse(node_of(body))
    assert [fault.field for fault in caught.value.faults] == ["results[0].call_id"]


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_a_problem(body: bytes) -> None:
    try:
        node_of(body)
    except Problem as problem:
        assert problem.kind.status == 400


@given(json_values)
def test_any_json_is_read_or_refused_with_a_field(value: Any) -> None:
    node = parse(json.dumps(value))
    for shape in (OPEN_SESSION, ASSEMBLE, TAKE_RESPONSE, TOOL_RESULTS, INPUT):
        try:
            shape.read(node, "")
        except FieldErrors as errors:
            assert errors.problem().kind.status in {400, 422}


@pytest.mark.parametrize(
    ("record", "spec", "not_for_rest"),
    [
        (OPEN_SESSION, specs.OpenSession, set()),
        # How to wait is said in the query.
        (ASSEMBLE, specs.Assemble, {"compaction", "wait_s"}),
        (TOOL_RESULTS, specs.TakeToolResults, set()),
        (INPUT, specs.TakeInput, set()),
        (START_RUN, specs.StartRun, set()),
        # Reported as `error: {status, body}`.
        (TAKE_RESPONSE, specs.TakeResponse, {"error_status", "error_body_raw"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_field_of_a_spec_can_be_sent(
    record: Record, spec: type[specs.Spec], not_for_rest: set[str]
) -> None:
    reachable = {member.target for member in record.members.values()}
    assert set(spec.model_fields) - not_for_rest <= reachable
