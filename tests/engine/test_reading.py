"""The lexical reading of a directive (capacity spec 5 and 7; design 7.11)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.reading import ORIENTATION_FLOOR, Reading, read_directive
from ctxengine.engine.tail import intent_text


@pytest.mark.parametrize(
    "text",
    [
        "What is the current price of copper?",
        "show me the live score",
        "How high is the tide right now?",
        "Can you tell me the current price of gold?",
        "Who leads the race today?",
        "Wie ist der aktuelle Kupferpreis?",
        "Quel est le prix actuel du cuivre ?",
        "¿Cuál es el precio actual del cobre?",
        "Qual è il prezzo attuale del rame?",
        "现在铜价是多少？",
        "最新の銅の価格はいくら？",
        "지금 구리 가격은 얼마?",
    ],
)
def test_a_value_as_it_stands_now_is_live_in_several_languages(text: str) -> None:
    assert read_directive(text).live


@pytest.mark.parametrize(
    "text",
    [
        "What is in the current directory?",
        "Refactor the current parser.",
        "What are you holding right now?",
        "We live in the city; where is the nearest park?",
        "What time is it right now?",
        "What is the current date?",
        "What is on the current branch?",
        "Now explain how tides come about.",
        "What was the price of copper in 1990?",
        "Write a poem about today.",
        "Run the latest build script.",
        "Was steht in der aktuellen Datei?",
        "",
    ],
)
def test_what_is_local_a_time_the_agents_own_or_no_question_is_not_live(text: str) -> None:
    assert not read_directive(text).live


def test_an_uncertain_reading_is_the_orientation_floor_and_never_everything() -> None:
    found = read_directive("Hm.")
    assert found.uncertain and found.required_domains == ORIENTATION_FLOOR


def test_a_domain_that_the_tools_serve_is_read_where_the_directive_names_it() -> None:
    found = read_directive("Send an email to Ada.", served=("email", "calendar"))
    assert found.domains == ("email",) and not found.uncertain


def test_names_quotes_and_places_in_files_are_entities() -> None:
    found = read_directive('Compare "the blue one" in src/app.py with what Ada Lovelace wrote.')
    assert set(found.entities) >= {"the blue one", "src/app.py", "Ada Lovelace"}
    assert {"ada", "lovelace", "app"} <= set(found.extra_terms)


@given(st.text(max_size=400))
def test_any_text_is_read_the_same_way_twice_and_within_its_limits(text: str) -> None:
    found = read_directive(text)
    assert found == read_directive(text)
    assert Reading.model_validate_json(found.model_dump_json()) == found


@given(st.text(max_size=60), st.lists(st.text(max_size=20), max_size=3), st.booleans())
def test_intent_and_stance_are_words_of_the_platform_alone(
    act: str, names: list[str], live: bool
) -> None:
    reading = Reading(act=act, domains=tuple(names), entities=tuple(names), live=live)
    known = Reading(act="unclear", live=live)
    from ctxengine.engine.reading import Act

    if act not in set(Act):
        assert intent_text(reading) == intent_text(known)
    assert "Every tool stays open to you" in intent_text(reading)
