"""The ruler's parts add up to its whole, whatever the figures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.layout import ROWS
from ctxengine.engine.manifest import Budget, Cut, Manifest, Reason, RowTotal
from ctxengine.ledger.queries.usage import Usage
from inspector.ruler import Ruler, ruler_of


def manifest(tokens: list[int], external: int = 0) -> Manifest:
    rows = []
    for row, amount in zip(ROWS, tokens, strict=True):
        trust = {} if "per" in row.trust else {row.trust: amount}
        if row.number == 10:
            outside = min(external, amount)
            trust = {"USER": amount - outside, "EXTERNAL_UNTRUSTED": outside}
        rows.append(
            RowTotal(
                row=row.number,
                tokens=amount,
                items=1,
                source="counted",
                trust={level: part for level, part in trust.items() if part},
                reason=Reason.FITS,
            )
        )
    cut = Cut(
        at_sequence=1,
        floor_sequence=0,
        pointer_floor_sequence=0,
        room=0,
        suffix=0,
        uncut=0,
        left_out_units=0,
        left_out_turns=0,
        left_out_tokens=0,
    )
    return Manifest(rows=rows, spans=[], cut=cut, yields=[])


def budget(used: int, factor: float = 1.0, total: int = 128_000) -> Budget:
    reserve, margin = 8_192, 5_991
    usable = math.floor((total - reserve - margin) / factor)
    rest = dict.fromkeys(
        (
            "prefix", "body", "never_yield", "fresh", "history_room", "history", "tool_results",
            "tool_results_cap",
        ),
        0,
    )  # fmt: skip
    return Budget(
        window=total,
        policy_cap=None,
        total=total,
        factor=factor,
        reserve=reserve,
        margin=margin,
        usable=usable,
        free=max(0, usable - used),
        request=used,
        **rest,
    )


def drawn(ruler: Ruler) -> float:
    return sum(float(segment.width.removesuffix("%")) for segment in ruler.window)


FIGURES = st.lists(st.integers(0, 9_000), min_size=15, max_size=15)


@given(FIGURES, st.integers(0, 9_000), st.floats(0.5, 2.0))
def test_segments_regions_and_trust_all_give_the_same_sums(
    tokens: list[int], external: int, factor: float
) -> None:
    ruler = ruler_of(manifest(tokens, external), budget(sum(tokens), factor), Usage(), Usage())
    assert sum(segment.tokens for segment in ruler.window) == ruler.scale_tokens
    assert sum(figure.tokens for figure in ruler.regions) == ruler.scale_tokens
    assert sum(figure.tokens for figure in ruler.by_trust) == sum(tokens)
    assert drawn(ruler) == pytest.approx(100, abs=0.05)
    assert ruler.unexplained == 0


def test_contradicting_figures_are_shown_not_hidden() -> None:
    wrong = budget(1_000).model_copy(update={"usable": 90_000})
    ruler = ruler_of(manifest([1_000] + [0] * 14), wrong, Usage(), Usage())
    assert ruler.unexplained == 90_000 - 113_817


def test_thin_segments_join_into_one_that_names_them() -> None:
    tokens = [20, 30, 40, 10, 0, 0, 0, 0, 0, 90_000, 0, 0, 0, 0, 0]
    ruler = ruler_of(manifest(tokens), budget(sum(tokens)), Usage(), Usage())
    assert ruler.window[0].label.startswith("4 small parts (Platform policy 20")
    assert ruler.window[0].tokens == 100


def test_a_small_request_in_a_large_window_is_magnified() -> None:
    tokens = [500] + [0] * 8 + [1_500] + [0] * 5
    ruler = ruler_of(manifest(tokens), budget(2_000), Usage(), Usage())
    assert sum(segment.tokens for segment in ruler.magnified) == 2_000


def test_reported_figures_win_over_predicted_ones() -> None:
    told = Usage(fresh=3, read=900, write=97, output=10)
    ruler = ruler_of(manifest([1_000] + [0] * 14), budget(1_000), Usage(read=1_000), told)
    assert ruler.cache_source == "reported"
    assert [segment.tokens for segment in ruler.cache] == [900, 97, 3]


def test_nothing_known_draws_no_cache() -> None:
    ruler = ruler_of(manifest([1_000] + [0] * 14), budget(1_000), Usage(), Usage())
    assert ruler.cache == ()
    assert ruler.cache_source == ""
