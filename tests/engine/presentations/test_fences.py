"""Fences of cards in a message: found as written, each line looked at once (capacity spec 10)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.lexeme import is_json_object, parse
from ctxengine.engine.presentations import fences, payload
from ctxengine.engine.presentations.fences import fences_in, without_shown
from ctxengine.engine.presentations.payload import canonical_payload, payload_sha256

WHAT_A_FENCE_IS = re.compile(
    r"^[ ]{0,3}```[ \t]*card(?:[ \t:]+(?P<type>[\w.-]{1,100}))?[ \t]*\n(?P<payload>.*?)\n[ ]{0,3}```[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
"""The whole rule at once: true, and far too slow for a message that opens many fences and closes none."""

LINES = [
    "```card metric",
    "   ```card:table \t",
    "    ```card metric",
    "``` card",
    "```card\r",
    "```card " + "x" * 100,
    "```card " + "x" * 101,
    "```",
    "  ```\t",
    "```\r",
    "````",
    "",
    " ",
    '{"value": 1}',
    '{"type": "table", "rows": []}',
    '{"type": 3}',
    '{"a": "',
    '"}',
    "words",
    "\x0b```card metric\u2028```",
]
texts = st.lists(st.sampled_from(LINES) | st.text(alphabet="`card \t\n:{}m", max_size=12)).map(
    "\n".join
)


def by_the_rule(text: str) -> list[tuple[str, str]]:
    """The fences of a text by the rule."""
    found = []
    for match in WHAT_A_FENCE_IS.finditer(text):
        inside = match["payload"].strip()
        if is_json_object(inside):
            member = parse(inside).get("type")
            named = match["type"] or (member.text() if member is not None else None)
            if named:
                found.append((named, inside))
    return found


@given(texts)
def test_fences_are_those_of_the_rule(text: str) -> None:
    assert [tuple(fence) for fence in fences_in(text)] == by_the_rule(text)


@given(texts, st.data())
def test_a_message_without_what_was_shown_is_that_of_the_rule(text: str, data: Any) -> None:
    digests = [payload_sha256(canonical_payload(parse(inside))) for _, inside in by_the_rule(text)]
    shown = set(data.draw(st.lists(st.sampled_from(digests)))) if digests else set()

    def kept(match: re.Match[str]) -> str:
        (found,) = by_the_rule(match[0]) or [("", "")]
        inside = found[1]
        return (
            "" if inside and payload_sha256(canonical_payload(parse(inside))) in shown else match[0]
        )

    assert without_shown(text, shown) == (
        WHAT_A_FENCE_IS.sub(kept, text).strip() if shown else text
    )


def steps_of(act: Callable[[], object]) -> int:
    """How many lines of the two modules run while something is done."""
    files = {fences.__file__, payload.__file__}
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


MANY = {
    "unclosed": lambda times: "```card metric\n" * times,
    "unclosed with a payload": lambda times: '```card metric\n{"value": 1}\n' * times,
    "closed at once": lambda times: "```card metric\n```\n" * times + "x",
    "no json": lambda times: "```card metric\nwords\n```\n" * times,
    "closings": lambda times: "```\n" * times,
    "blanks": lambda times: ("```card" + " " * 40 + "!\n") * times,
}


@pytest.mark.parametrize("kind", MANY)
@pytest.mark.parametrize(
    "act", [fences_in, lambda text: without_shown(text, {"0" * 64})], ids=["in", "without"]
)
def test_four_times_the_text_costs_four_times_the_steps(
    kind: str, act: Callable[[str], object]
) -> None:
    few, many = MANY[kind](100), MANY[kind](400)
    assert steps_of(lambda: act(many)) <= 5 * steps_of(lambda: act(few)) + 100


def test_each_line_is_matched_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Watched:
        def __init__(self, pattern: re.Pattern[str]) -> None:
            self.pattern = pattern

        def fullmatch(self, line: str) -> re.Match[str] | None:
            seen.append(line)
            return self.pattern.fullmatch(line)

    monkeypatch.setattr(fences, "_OPENS", Watched(fences._OPENS))
    monkeypatch.setattr(fences, "_CLOSES", Watched(fences._CLOSES))
    text = '```card metric\n{"value": 1}\n' * 2_000
    assert fences_in(text) == ()
    assert len(seen) <= text.count("\n") + 1
    assert not any("\n" in line for line in seen)
