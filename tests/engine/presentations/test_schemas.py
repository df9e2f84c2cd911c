"""Card schemas: what a card is known by, whatever else it holds (capacity spec 10)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ctxengine.engine.lexeme import parse
from ctxengine.engine.presentations.fences import fences_in, without_shown
from ctxengine.engine.presentations.payload import canonical_payload, payload_sha256
from ctxengine.engine.presentations.schemas import (
    CARD_SCHEMAS,
    MAX_WHOLE_CHARS,
    CardSchema,
    identity_of,
    schema_of,
)
from ctxengine.engine.trust.model_view import model_view

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.text(max_size=6), values, max_size=5)

CARDS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "metric": ({"label": "Tide", "value": 3}, "Tide", {"label": "Tide", "value": 3}),
    "research.synthesis": (
        {
            "title": "Tides",
            "takeaways": ["they rise"],
            "sources": [{"title": "S", "url": "u", "snippet": "long"}],
            "body": "long",
        },
        "Tides",
        {
            "title": "Tides",
            "takeaways": ["they rise"],
            "sources.title": ["S"],
            "sources.url": ["u"],
        },
    ),
    "table": (
        {"title": "T", "columns": ["a"], "rows": [[1], [2], [3]]},
        "T",
        {"title": "T", "columns": ["a"], "rows.count": 3, "rows.first": [1]},
    ),
    "chart": (
        {"title": "T", "series": [{"name": "x", "points": [1, 2]}], "summary": "up"},
        "T",
        {
            "title": "T",
            "series.name": ["x"],
            "series.points.count": [2],
            "accessible_summary": "up",
        },
    ),
    "entity": (
        {"title": "Ada", "type": "person", "fields": {"born": 1815}, "image": "x"},
        "Ada",
        {"title": "Ada", "type": "person", "fields": {"born": 1815}},
    ),
    "checklist": (
        {"title": "Do", "items": [{"label": "a", "note": "n"}, "b"]},
        "Do",
        {"title": "Do", "items.label": ["a", "b"]},
    ),
    "timeline": (
        {"title": "When", "events": [{"label": "a", "at": "x"}]},
        "When",
        {"title": "When", "events.label": ["a"]},
    ),
}


def test_every_known_type_has_an_example_here() -> None:
    assert {schema.type for schema in CARD_SCHEMAS} == set(CARDS)


@pytest.mark.parametrize("type", CARDS)
def test_a_card_is_known_by_the_fields_its_type_declares(type: str) -> None:
    payload, title, digest = CARDS[type]
    found = identity_of(schema_of(type), parse(json.dumps(payload)))
    assert (found.title, json.loads(found.digest), found.found) == (title, digest, True)


@given(objects, st.randoms(use_true_random=False))
def test_the_order_of_keys_and_blanks_leaves_no_trace(value: dict[str, Any], random: Any) -> None:
    def shuffled(node: Any) -> Any:
        if isinstance(node, dict):
            keys = list(node)
            random.shuffle(keys)
            return {key: shuffled(node[key]) for key in keys}
        return [shuffled(child) for child in node] if isinstance(node, list) else node

    first = canonical_payload(parse(json.dumps(value)))
    second = canonical_payload(parse(json.dumps(shuffled(value), indent=2, ensure_ascii=False)))
    assert first == second and payload_sha256(first) == payload_sha256(second)
    assert canonical_payload(parse(first)) == first


def test_numbers_keep_the_digits_they_were_written_with() -> None:
    given_text = '{"b": 1.0, "a": 123456789012345678901234567890, "c": 1e2}'
    assert canonical_payload(parse(given_text)) == (
        '{"a":123456789012345678901234567890,"b":1.0,"c":1e2}'
    )


@pytest.mark.parametrize("type", [*CARDS, "unheard.of"])
@given(value=objects)
def test_any_object_is_a_card_of_any_type_or_has_no_identity(
    type: str, value: dict[str, Any]
) -> None:
    found = identity_of(schema_of(type), parse(json.dumps(value)))
    assert isinstance(found.digest, str)
    if type in CARDS:
        json.loads(found.digest)


@pytest.mark.parametrize("selector", ["", "a..b", "rows[*]", "rows[1]", "a b", "a|", "[]"])
def test_a_selector_that_names_nothing_is_refused(selector: str) -> None:
    with pytest.raises(ValidationError):
        CardSchema(type="x", identity=(selector,))


def test_a_registered_schema_describes_a_known_type_anew() -> None:
    own = CardSchema(type="metric", identity=("value",))
    assert schema_of("metric", own) is own
    only_execute = CardSchema(type="metric", execute=True)
    assert schema_of("metric", only_execute).identity == ("*",)
    assert schema_of("metric", only_execute).execute


def test_fences_are_read_where_they_hold_an_object_and_name_a_type() -> None:
    text = (
        'Look:\n```card metric\n{"value": 1}\n```\n```card\n{"type": "table", "rows": []}\n```\n'
        '```card\n{"no": "type"}\n```\n```card metric\nnot json\n```\n```python\n{"a": 1}\n```'
    )
    assert [fence.semantic_type for fence in fences_in(text)] == ["metric", "table"]


def test_a_fence_that_is_an_entry_of_its_own_is_taken_out_of_the_prose() -> None:
    text = 'Before.\n```card metric\n{"b": 2, "a": 1}\n```\nAfter.'
    shown = payload_sha256('{"a":1,"b":2}')
    assert without_shown(text, {shown}) == "Before.\n\nAfter."
    assert without_shown(text, {"0" * 64}) == text


@given(objects)
def test_a_digest_of_everything_is_bounded_and_says_what_it_left_out(value: dict[str, Any]) -> None:
    value |= {"label": "Tide", "value": 3, "series": ["x" * 50] * 400, "log": "y" * 90_000}
    found = identity_of(schema_of("metric"), parse(json.dumps(value)))
    told = json.loads(found.digest)
    assert len(found.digest) <= MAX_WHOLE_CHARS + 100
    assert (told["label"], told["value"]) == ("Tide", 3)
    (left_out,) = [name for name in told if name.startswith("[...")]
    count, chars = re.findall(r"\d[\d,]*", left_out)
    assert int(count) == len({model_view(name) for name in value}) - (len(told) - 1)
    assert int(chars.replace(",", "")) > 100_000


@pytest.mark.parametrize("type", [*CARDS, "unheard.of"])
@given(value=objects, many=st.integers(1, 300))
def test_no_digest_is_much_longer_than_its_payload(
    type: str, value: dict[str, Any], many: int
) -> None:
    wide = {f"{place}{name}": inner for place in range(many) for name, inner in value.items()}
    raw = json.dumps({**wide, "rows": [wide], "columns": wide, "items": [wide] * 3})
    found = identity_of(schema_of(type), parse(raw))
    assert len(found.digest) <= max(len(raw), MAX_WHOLE_CHARS) + 500


def test_selectors_that_tell_the_same_twice_cost_no_more_than_the_card() -> None:
    many = CardSchema(type="x", identity=("rows", "rows[]", "rows[0]", "a|rows", "b|rows[]"))
    raw = json.dumps({"rows": ["z" * 40] * 500})
    assert len(identity_of(many, parse(raw)).digest) <= len(raw) + 500
