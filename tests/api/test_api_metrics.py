"""`GET metrics`: one report, each ratio with its parts, and odd questions refused by name."""

from __future__ import annotations

import pytest

from tests.api.door import Door

USAGE = {
    "input_tokens": 100,
    "cache_read_input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "output_tokens": 10,
}


def answered(door: Door, message: str, **usage: int) -> str:
    """A session with one answered request."""
    session = door.open()
    run = door.run(session, message)
    door.assemble(run)
    door.says(run, "ok", usage={**USAGE, **usage})
    return session


def test_a_report_holds_sums_and_both_parts_of_every_ratio(door: Door) -> None:
    session = answered(door, "Hello?")
    found = door.get("metrics").ok()
    totals = found["totals"]
    assert totals["requests"]["total"] == totals["requests"]["reported"] == 1
    assert totals["tokens"]["prompt"] == 100
    assert totals["cached_share"] == {"numerator": 0, "denominator": 100, "value": 0.0}
    assert totals["cached_of_preceding"]["value"] is None
    assert sum(step["requests"]["total"] for step in found["trend"]) == 1
    assert [row["session"] for row in found["worst"]["cost"]] == [session]


def test_groups_and_filters_are_those_of_the_query(door: Door) -> None:
    answered(door, "Hello?")
    found = door.get("metrics?group_by=model&provider=anthropic").ok()
    assert [group["key"] for group in found["groups"]] == ["anthropic/claude-sonnet-4-6"]
    assert found["filters"]["provider"] == "anthropic"
    assert door.get("metrics?agent=nobody").ok()["totals"]["requests"]["total"] == 0


def test_a_short_range_has_hourly_steps(door: Door) -> None:
    found = door.get("metrics?from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z").ok()
    assert found["range"]["step"] == "hour"
    assert len(found["trend"]) == 24


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("sort=cost", "unknown_parameter"),
        ("group_by=colour", "invalid_parameter"),
        ("engine=steam", "invalid_parameter"),
        ("from=yesterday", "invalid_parameter"),
        ("imported=maybe", "invalid_parameter"),
        ("from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", "invalid_parameter"),
        ("from=2020-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", "invalid_parameter"),
    ],
)
def test_an_odd_question_is_a_problem_that_names_it(door: Door, query: str, code: str) -> None:
    answer = door.get(f"metrics?{query}")
    assert (answer.status, answer.code) == (400, code)
