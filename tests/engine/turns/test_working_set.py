"""The planner keeps turns whole and in budget, holds still between batches, and brings back what a directive asks for."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.history.turn_costs import TurnCost
from ctxengine.engine.history.working_set import (
    BATCH_TURNS,
    Form,
    Room,
    WorkingSet,
    plan_working_set,
)
from ctxengine.engine.turns.card import CARDS_FRAME_TOKENS
from ctxengine.engine.turns.relevance import Values

sizes = st.lists(st.tuples(st.integers(20, 9_000), st.integers(20, 120)), max_size=70)


def costs(pairs: Sequence[tuple[int, int]]) -> list[TurnCost]:
    return [
        TurnCost(number, number * 10, number * 10 + 9, max(full, card), card)
        for number, (full, card) in enumerate(pairs, start=1)
    ]


def recency(count: int) -> dict[int, Values]:
    return {n: Values(1 / (1 + count - n), 0.0, 0.0) for n in range(1, count + 1)}


def plan(turns: list[TurnCost], tokens: int, packet: int = 500, **more: object) -> WorkingSet:
    values = more.pop("values", recency(len(turns)))
    return plan_working_set(turns, Room(tokens, packet), values, **more)  # type: ignore[arg-type]


def stable_form(made: WorkingSet, turn: int) -> Form:
    """The form in the stable history: a turn that is brought back behind it stays in it as it was."""
    return made.model_copy(update={"promoted": ()}).form_of(turn)


def cost_of(made: WorkingSet, turns: list[TurnCost]) -> int:
    forms = [stable_form(made, turn.number) for turn in turns]
    total = made.packet_tokens + (CARDS_FRAME_TOKENS if Form.CARD in forms else 0)
    for turn, form in zip(turns, forms, strict=True):
        total += turn.full if form is Form.FULL else turn.card if form is Form.CARD else 0
    return total


@given(sizes, st.integers(0, 60_000))
def test_every_turn_has_exactly_one_place_and_full_turns_are_the_newest(
    pairs: list[tuple[int, int]], tokens: int
) -> None:
    turns = costs(pairs)
    made = plan(turns, tokens)
    forms = [stable_form(made, turn.number) for turn in turns]
    order = {Form.PACKET: 0, Form.CARD: 1, Form.FULL: 2}
    ranks = [order[form] for form in forms]
    assert ranks == sorted(ranks)
    assert made.packet_through <= made.full_from - 1


@given(sizes, st.integers(700, 60_000))
def test_the_plan_costs_what_it_says_and_stays_in_its_room_wherever_a_packet_can(
    pairs: list[tuple[int, int]], tokens: int
) -> None:
    turns = costs(pairs)
    made = plan(turns, tokens)
    stable = cost_of(made, turns)
    assert made.tokens == stable + sum(turns[n - 1].full for n in made.promoted)
    assert made.tokens <= max(tokens, 500)


@given(sizes)
def test_where_everything_fits_every_turn_is_full(pairs: list[tuple[int, int]]) -> None:
    turns = costs(pairs)
    made = plan(turns, 3 * sum(turn.full for turn in turns) + 1_000)
    assert all(made.form_of(turn.number) is Form.FULL for turn in turns)
    assert made.packet_through == 0


@given(sizes, st.integers(700, 60_000))
def test_between_two_batches_no_turn_changes_form_unless_the_room_runs_out(
    pairs: list[tuple[int, int]], tokens: int
) -> None:
    turns = costs(pairs)
    for count in range(1, len(turns)):
        if (count + 1) % BATCH_TURNS == 0:
            continue
        before, after = plan(turns[:count], tokens), plan(turns[: count + 1], tokens)
        if before.replanned or after.replanned:
            continue
        assert (before.packet_through, before.full_from) == (after.packet_through, after.full_from)


@given(sizes, st.integers(700, 60_000))
def test_a_packet_ends_at_a_batch_or_where_full_turns_begin(
    pairs: list[tuple[int, int]], tokens: int
) -> None:
    made = plan(costs(pairs), tokens)
    assert made.packet_through % BATCH_TURNS == 0 or made.packet_through == made.full_from - 1


@given(sizes, st.integers(0, 30_000), st.integers(0, 60_000))
def test_the_stable_history_does_not_depend_on_the_directive(
    pairs: list[tuple[int, int]], tokens: int, seed: int
) -> None:
    turns = costs(pairs)
    odd = {n: Values(1 / n, (n * seed % 7) / 7, 0.0) for n in range(1, len(turns) + 1)}
    one, other = plan(turns, tokens), plan(turns, tokens, values=odd)
    assert (one.packet_through, one.full_from) == (other.packet_through, other.full_from)


def test_a_small_model_sees_the_newest_turns_full_and_the_others_in_short() -> None:
    turns = costs([(260, 75)] * 31)
    made = plan(turns, 3_000, packet=400)
    assert made.tokens <= 3_000
    assert made.form_of(31) is Form.FULL
    assert Form.CARD in {made.form_of(n) for n in range(1, 31)}


def test_a_large_model_sees_the_same_session_whole() -> None:
    made = plan(costs([(2_600, 75)] * 31), 200_000)
    assert {made.form_of(n) for n in range(1, 32)} == {Form.FULL}


def test_no_room_leaves_nothing_but_the_packet() -> None:
    made = plan(costs([(500, 60)] * 24), 0)
    assert {made.form_of(n) for n in range(1, 25)} == {Form.PACKET}
    assert made.promoted == ()


def test_the_turn_a_directive_is_about_comes_back_whole_and_its_neighbours_do_not() -> None:
    turns = costs([(900, 60)] * 40)
    values = recency(40) | {3: Values(0.02, 1.0, 0.0), 4: Values(0.02, 0.2, 0.0)}
    made = plan(turns, 12_000, values=values)
    assert made.promoted == (3,)
    assert made.values[3] == (0.02, 1.0, 0.0)
    assert 4 in made.values


def test_a_turn_too_large_to_promote_gives_way_to_a_smaller_one() -> None:
    turns = costs([(900, 60)] * 2 + [(50_000, 60)] + [(900, 60)] * 37)
    values = recency(40) | {3: Values(0.02, 1.0, 0.0), 2: Values(0.02, 0.8, 0.0)}
    assert plan(turns, 12_000, values=values).promoted == (2,)


def test_what_an_operator_wants_whole_is_promoted_whatever_its_value() -> None:
    made = plan(costs([(900, 60)] * 40), 12_000, by_hand=[5])
    assert 5 in made.promoted
    assert made.by_hand == (5,)
