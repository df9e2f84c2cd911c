"""Comparing two request bodies part by part."""

from __future__ import annotations

from inspector.bodydiff import changes
from inspector.jsonview import JsonPart


def message(place: int, text: str) -> JsonPart:
    return JsonPart(f"messages.{place}", f'{{"text":"{text}"}}', "")


def test_what_was_appended_is_added_and_the_rest_equal() -> None:
    before = tuple(message(place, f"m{place}") for place in range(3))
    found = changes(before, (*before, message(3, "new")))
    assert [(change.kind, change.count) for change in found] == [("equal", 3), ("added", 1)]
    assert found[1].path == "messages.3"


def test_a_changed_part_carries_its_lines() -> None:
    found = changes((message(0, "a"), message(1, "b")), (message(0, "a"), message(1, "c")))
    assert [change.kind for change in found] == ["equal", "changed"]
    assert {line.kind for line in found[1].lines} >= {"added", "removed"}


def test_a_removed_part_is_named() -> None:
    found = changes((message(0, "a"), message(1, "b")), (message(0, "a"),))
    assert [(change.kind, change.path) for change in found][1:] == [("removed", "messages.1")]


def test_parts_of_different_families_are_never_paired() -> None:
    found = changes((JsonPart("tools.0", "1", ""),), (JsonPart("messages.0", "1", ""),))
    assert sorted(change.kind for change in found) == ["added", "removed"]


def test_a_very_long_part_is_listed_with_its_size() -> None:
    found = changes((message(0, "a" * 90_000),), (message(0, "b" * 90_000),))
    assert found[0].kind == "changed"
    assert found[0].lines == ()
