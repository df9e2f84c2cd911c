"""Development cases on the prefix: dev-10 (a date in it) and dev-11 (order in it)."""

from __future__ import annotations

import itertools
import json
from datetime import datetime
from typing import Any

import pytest

from ctxengine.engine.plan.plan import wire_prefix
from ctxengine.engine.wire.registry import renderer_for
from ctxengine.ledger.models import PlanRow
from ctxengine.service.specs import ToolSpec
from ctxengine.service.wiring import plan_from
from tests.cast import PROVIDERS, Runtime
from tests.reading import prefix_text, seen
from tests.service.conftest import Case

pytestmark = pytest.mark.django_db

OWN_10 = {
    "timezone": "Europe/Oslo",
    "requests": [
        {"now": "2026-10-24T21:59:59Z", "user": "Which day?"},
        {"now": "2026-10-24T22:00:01Z", "user": "Still?"},
        {"now": "2026-10-25T01:30:00Z", "user": "What time?"},
    ],
}
CLOCKS = {
    "2026-10-24T21:59:59Z": "Saturday 24 October 2026, 23:59 +02:00",
    "2026-10-24T22:00:01Z": "Sunday 25 October 2026, 00:00 +02:00",
    "2026-10-25T01:30:00Z": "Sunday 25 October 2026, 02:30 +01:00",
    "2026-03-28T22:59:30Z": "Saturday 28 March 2026, 23:59 +01:00",
    "2026-03-28T23:00:30Z": "Sunday 29 March 2026, 00:00 +01:00",
    "2026-03-29T01:00:30Z": "Sunday 29 March 2026, 03:00 +02:00",
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_10_midnight_and_summer_time_move_the_runtime_row_alone(case: Case, provider: str) -> None:
    given = case("10", OWN_10)
    runtime = Runtime(provider=provider)
    bodies = []
    for request in given["requests"]:
        now = datetime.fromisoformat(request["now"])
        runtime.ask(request["user"], now=now, timezone=given["timezone"])
        bodies.append(runtime.assemble().body)
        runtime.say("Noted.")
    assert len({row.prefix_sha256 for row in runtime.requests}) == 1
    assert len({row.wire_prefix_sha256 for row in runtime.requests}) == 1
    for body, request in zip(bodies, given["requests"], strict=True):
        clocks = [entry.text for entry in seen(body) if "Now: " in entry.text]
        assert len(clocks) == 1
        assert CLOCKS[request["now"]] in clocks[0]
        assert "(Europe/Oslo)" in clocks[0]
        assert "2026" not in prefix_text(body)
    told = [[entry for entry in seen(body) if "Now: " not in entry.text] for body in bodies]
    for earlier, later in itertools.pairwise(told):
        assert later[: len(earlier)] == earlier


TOOL_A = {
    "name": "aa",
    "description": "first",
    "input_schema": {"type": "object", "properties": {}},
}


def tool_b(*, backwards: bool = False, levels: list[str] | None = None) -> dict[str, Any]:
    """One tool in two spellings: keys in another order are the same tool, an enum in another order is not."""
    properties = {"y": {"type": "string", "enum": levels or ["few", "many"]}, "x": {"type": "integer"}}  # fmt: skip
    schema = {"type": "object", "properties": properties, "required": ["y", "x"]}
    made = {
        "name": "bb",
        "description": "second",
        "input_schema": schema,
        "required_scopes": ["w", "r"],
    }
    if not backwards:
        return made
    schema = {key: schema[key] for key in reversed(schema)}
    schema["properties"] = {key: properties[key] for key in reversed(properties)}
    made |= {"input_schema": schema, "required_scopes": ["r", "w"]}
    return dict(reversed(made.items()))


OWN_11 = {
    "first": [tool_b(), TOOL_A],
    "second": [TOOL_A, tool_b(backwards=True)],
    "third_differs": [TOOL_A, tool_b(levels=["many", "few"])],
}


def opened(tools: list[dict[str, Any]], provider: str) -> Runtime:
    return Runtime(
        provider=provider,
        tools=tuple(
            ToolSpec(
                name=tool["name"],
                description=tool["description"],
                input_schema_raw=json.dumps(tool["input_schema"]),
                required_scopes=tuple(tool.get("required_scopes", ())),
            )
            for tool in tools
        ),
    )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_11_order_without_meaning_changes_no_byte_and_order_with_meaning_does(
    case: Case, provider: str
) -> None:
    given = case("11", OWN_11)
    first, second, third = (
        opened(given[name], provider) for name in ("first", "second", "third_differs")
    )
    plans = [runtime.opened.plan for runtime in (first, second, third)]
    assert plans[0].prefix_sha256 == plans[1].prefix_sha256 != plans[2].prefix_sha256
    hashes = [plan.wire_prefix_sha256 for plan in plans]
    assert hashes[0] == hashes[1] != hashes[2]
    prefixes = []
    for runtime in (first, second, third):
        runtime.ask("Go.")
        prefixes.append(prefix_text(runtime.assemble().body))
    assert prefixes[0] == prefixes[1] != prefixes[2]
    declared = next(t for t in given["first"] if "required" in t["input_schema"])
    required = json.dumps(declared["input_schema"]["required"], separators=(",", ":"))
    assert required in prefixes[0].replace(" ", "").replace("\\", "")
    assert prefix_after_storage(first) == prefix_after_storage(second)


def prefix_after_storage(runtime: Runtime) -> bytes:
    stored = plan_from(runtime.log, PlanRow.objects.get(session_id=runtime.session))
    return renderer_for(runtime.provider).prefix_bytes(wire_prefix(stored, bytes(32)))
