"""An embedder finds turns by meaning where one is configured; without one, words decide alone (capacity spec 4 and 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from ctxengine.engine.turns.similarity import MIN_LIKENESS, likeness_of, pack
from ctxengine.ledger.models import IndexedTurn
from ctxengine.service.erase import erase_person
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import PrincipalSpec
from ctxengine.service.turns.embedder import configured_embedder
from ctxengine.service.turns.values import values_for
from tests.cast import Runtime

pytestmark = pytest.mark.django_db

_SUBJECTS = (("car", "automobile", "vehicle"), ("rain", "weather", "storm"), ("soup", "dinner"))


class TinyEmbedder:
    """One direction for each subject: words of one subject point the same way."""

    version = "tiny@1"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(any(w in t.lower() for w in some)) for some in _SUBJECTS] for t in texts]


class BrokenEmbedder:
    """It never answers."""

    version = "broken@1"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise TimeoutError("nobody is there")


@pytest.fixture
def tiny(settings: Any) -> None:
    settings.CTX_EMBEDDER = f"{__name__}.TinyEmbedder"


def talked() -> Runtime:
    runtime = Runtime(principal=PrincipalSpec(id="mara"), extra={"engine": "working_set"})
    for message in ("My automobile squeaks.", "A storm is near.", "Dinner was late.", "Hm, well."):
        runtime.turn(message, "Noted.")
    return runtime


def relevance(runtime: Runtime, directive: str) -> dict[int, float]:
    values = values_for(runtime.row, directive, newest=4)
    return {turn: value.relevance for turn, value in values.items() if value.relevance}


@pytest.mark.usefixtures("tiny")
def test_a_turn_is_found_by_another_word_for_the_same() -> None:
    runtime = talked()
    assert relevance(runtime, "Which vehicle?") == {1: pytest.approx(1.0)}
    runtime.ask("Which vehicle?")
    runtime.assemble()
    assert all(
        replay_request(actor=runtime.actor, request_id=r.id).identical for r in runtime.requests
    )


def test_without_one_no_vector_is_kept_and_words_decide() -> None:
    runtime = talked()
    assert relevance(runtime, "Which vehicle?") == {}
    assert relevance(runtime, "Which automobile?") == {1: 1.0}
    rows = IndexedTurn.objects.filter(session_id=runtime.session)
    assert {(bytes(row.embedding), row.embedder) for row in rows} == {(b"", "")}


@pytest.mark.usefixtures("tiny")
def test_vectors_of_another_version_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = talked()
    monkeypatch.setattr(configured_embedder(), "version", "tiny@2")
    assert relevance(runtime, "Which vehicle?") == {}


@pytest.mark.usefixtures("tiny")
def test_vectors_go_with_the_person() -> None:
    runtime = talked()
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert not IndexedTurn.objects.filter(session_id=runtime.session).exists()


def test_one_that_fails_costs_nothing_but_its_part(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.CTX_EMBEDDER = f"{__name__}.BrokenEmbedder"
    runtime = talked()
    assert relevance(runtime, "Which automobile?") == {1: 1.0}
    assert "broken@1 failed" in caplog.text
    assert "squeaks" not in caplog.text


@pytest.mark.parametrize("path", ["nowhere.to.Be", "json.JSONDecoder"])
def test_what_is_no_embedder_is_refused(settings: Any, path: str) -> None:
    settings.CTX_EMBEDDER = path
    with pytest.raises(ImproperlyConfigured, match="CTX_EMBEDDER"):
        configured_embedder()


def test_likeness_is_the_cosine_from_its_floor_on() -> None:
    asked = pack([1, 0])
    found = likeness_of(
        asked, {1: pack([2, 0]), 2: pack([1, 1]), 3: pack([1, 4]), 4: pack([1, 0, 0])}
    )
    assert found == {1: 1.0, 2: pytest.approx(0.7071, abs=1e-3)}
    assert min(found.values()) >= MIN_LIKENESS
    assert likeness_of(pack([0, 0]), {1: pack([1, 0])}) == {}
