"""Whatever a manifest or a strip can hold has words."""

from __future__ import annotations

from ctxengine.engine.manifest import Cut, Form, Reason, Span
from ctxengine.ledger.queries.session import ACT_TYPES
from inspector.reasons import FORM_WORDS, WORDS, why
from inspector.strip import _GLYPHS, _RANKS

CUT = Cut(
    at_sequence=9,
    floor_sequence=0,
    pointer_floor_sequence=0,
    room=500,
    suffix=450,
    uncut=900,
    left_out_units=3,
    left_out_turns=1,
    left_out_tokens=450,
)


def test_every_reason_and_form_has_words() -> None:
    assert set(WORDS) == set(Reason)
    assert set(FORM_WORDS) == set(Form)


def test_every_act_has_a_sign_and_a_rank() -> None:
    assert set(ACT_TYPES) == set(_GLYPHS) == set(_RANKS)
    assert len({looks[0] for looks in _GLYPHS.values()}) == len(_GLYPHS)


def test_what_is_out_names_what_it_lost_to() -> None:
    span = Span(row=10, form=Form.OUT, reason=Reason.BELOW_CUT, items=0, tokens=450)
    assert why(span, CUT) == "before the history cut; it lost to: room 500 · suffix 450"
    told = span.model_copy(update={"numbers": {"room": 7}})
    assert why(told, CUT) == "before the history cut; it lost to: room 7"
