"""Arguments held against a deferred tool's schema, hostile schemas included."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.control.arguments import faults_of
from ctxengine.engine.control.unwrap import unwrap

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
    "additionalProperties": False,
}


def faults(schema: Any, arguments: Any) -> list[tuple[str, str]]:
    return [tuple(f) for f in faults_of(json.dumps(schema), json.dumps(arguments))]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"city": "Oslo"}, []),
        ({"city": "Oslo", "days": 3}, []),
        ({}, [("required", "city")]),
        ({"city": 3}, [("type", "string")]),
        ({"city": "Oslo", "days": 0}, [("minimum", "1")]),
        ({"city": "Oslo", "more": 1}, [("additionalProperties", "")]),
    ],
)
def test_what_arguments_break_is_named_by_keyword(
    arguments: Any, expected: list[tuple[str, str]]
) -> None:
    assert faults(CITY, arguments) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "^(a+)+$"}}},
        {"properties": {"a": {"$ref": "https://example.org/schema.json"}}},
        {"$ref": "#"},
        {"type": "nonsense"},
        {"properties": []},
        {"properties": {"a": {"multipleOf": 0}}},
        {"required": 3},
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {
            "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 8} for n in range(20)}
            | {"d20": {}},
            "$ref": "#/$defs/d0",
        },
    ],
)
def test_a_schema_that_cannot_be_judged_safely_is_left_to_the_runtime(schema: Any) -> None:
    assert faults(schema, {"a": "a" * 40 + "!", "b": 1}) == []


def test_no_reference_of_a_schema_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("urllib.request.urlopen", lambda *given, **_: asked.append(given))
    faults({"properties": {"a": {"$ref": "https://example.org/schema.json"}}}, {"a": 1})
    assert asked == []


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ('{"name":"x","arguments":{"b":1.0,"a":[1, 2]}}', "x", '{"b":1.0,"a":[1, 2]}'),
        ('{"name":"x","arguments":"{\\"a\\":1}"}', "x", '{"a":1}'),
        ('{"name":"x"}', "x", "{}"),
        ('{"name":"x","arguments":null}', "x", "{}"),
        ('{"name":"x","arguments":[1]}', "x", "[1]"),
        ('{"arguments":{}}', "", "{}"),
        ('{"name":3,"arguments":{}}', "", "{}"),
    ],
)
def test_the_inner_call_is_read_as_the_model_wrote_it(text: str, name: str, arguments: str) -> None:
    assert unwrap(text) == (name, arguments)
