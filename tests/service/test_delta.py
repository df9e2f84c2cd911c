"""The delta form takes bodies apart without reading what stands in them (design 5)."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.lexeme import MAX_DEPTH
from ctxengine.engine.wire.base import WireApi
from ctxengine.service.delta import Taken, delta_of, taken_apart

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)


def taken(body: str) -> Taken:
    built: Any = SimpleNamespace(
        body=body.encode(), renderer=SimpleNamespace(api=WireApi.ANTHROPIC)
    )
    found = taken_apart(built)
    assert found is not None
    return found


def together(base: Taken, delta: dict[str, Any]) -> dict[str, Any]:
    kept = [json.loads(text) for text in base.messages[: delta.pop("keep")]]
    fields = {name: json.loads(text) for name, text in base.fields.items()}
    for name in delta.pop("removed", []):
        del fields[name]
    del delta["base_sha256"], delta["sha256"]
    return {**fields, **delta, "messages": kept + delta["messages"]}


@given(
    st.lists(VALUES, max_size=4),
    st.lists(VALUES, max_size=4),
    st.dictionaries(st.text(), VALUES, max_size=3),
    st.dictionaries(st.text(), VALUES, max_size=3),
    st.sampled_from([None, 2]),
)
def test_base_and_delta_make_the_new_body(
    old: list[Any], new: list[Any], before: Any, after: Any, indent: int | None
) -> None:
    names = {"messages", "input", "contents", "keep", "removed", "base_sha256", "sha256"}
    before, after = ({k: v for k, v in one.items() if k not in names} for one in (before, after))
    one = json.dumps({**before, "messages": old}, indent=indent)
    two = {"messages": new, **after}
    delta = delta_of(taken(one), taken(json.dumps(two, indent=indent)))
    assert delta is not None
    assert together(taken(one), json.loads(delta)) == two


@pytest.mark.parametrize(
    "odd",
    ["1" * 5_000, "-" + "9" * 9_001, "1." + "3" * 6_000 + "e-7", "[" * MAX_DEPTH + "]" * MAX_DEPTH],
    ids=["long", "longer", "fraction", "deep"],
)
def test_what_the_interpreter_would_not_read_is_handed_on_as_it_is_spelt(odd: str) -> None:
    inner = odd if not odd.startswith("[") else odd[3:-3]
    one = f'{{"model":"m","messages":[{{"n":{inner}}}]}}'
    two = f'{{"model":"m","messages":[{{"n":{inner}}},{{"m":{inner}}}]}}'
    delta = delta_of(taken(one), taken(two))
    assert delta is not None and delta.startswith(
        b'{"keep":1,"messages":[{"m":' + inner.encode() + b"}]"
    )
