"""How long history's entries are asked to live: an operator's setting, advised by the gaps a session had."""

from __future__ import annotations

from ctxengine.engine.cache.markers import place_markers
from ctxengine.engine.cache.predict import Prediction
from ctxengine.engine.cache.rules import cache_rules
from ctxengine.engine.cache.ttl import advise_ttl, asked_life
from ctxengine.engine.cache.warnings import cache_warnings
from ctxengine.engine.wire.base import WireApi

CLAUDE = cache_rules(WireApi.ANTHROPIC, "anthropic", "claude-sonnet-4-6")


def test_the_advice_names_the_setting_and_ends_once_it_is_taken() -> None:
    advice = advise_ttl([600.0] * 10, CLAUDE)
    found = Prediction(0, 0, 0, (), "hit")
    (warning,) = [
        text
        for text in cache_warnings(found, rules=CLAUDE, advice=advice, gap=600.0)
        if "history_ttl" in text
    ]
    assert "10 of 10" in warning
    taken = cache_warnings(found, rules=CLAUDE, advice=advice, gap=600.0, life="1h")
    assert not [text for text in taken if "history_ttl" in text]


def test_no_advice_where_no_marker_can_ask_for_an_hour() -> None:
    new_gpt = cache_rules(WireApi.OPENAI_CHAT, "openai", "gpt-5.6")
    assert advise_ttl([3_000.0] * 10, new_gpt) is None


def test_a_longer_life_of_history_lengthens_the_prefix_with_it() -> None:
    markers = place_markers(
        api=WireApi.ANTHROPIC,
        model="claude-sonnet-4-6",
        has_tools=True,
        history_fragments=10,
        completed_fragments=14,
        history_ttl="1h",
    )
    assert [marker.ttl for marker in markers] == ["1h"] * 4
    assert asked_life(markers) == "1h"
