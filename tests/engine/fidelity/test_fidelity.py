"""Fidelity: which facts later answers use, and what a request still holds of them."""

from __future__ import annotations

from ctxengine.engine.fidelity.facts import FactKind, Said, Use, uses_of
from ctxengine.engine.fidelity.view import Fidelity, RequestView, judged, nothing_shown

PATH = "/srv/app/limits.py"


def said(place: int, speaker: str, text: str, *arguments: str) -> Said:
    return Said(place, 0, speaker, text, arguments)


def kinds(uses: tuple[Use, ...]) -> dict[FactKind, str]:
    return {use.kind: use.fact for use in uses}


def test_a_fact_counts_once_something_before_the_answer_held_it() -> None:
    found = uses_of(
        [
            said(0, "user", f'Look at {PATH}: the "upper bound" is 48213.'),
            said(1, "model", f"{PATH} sets `upper bound` to 48213 and /srv/other.py is new."),
        ]
    )
    assert kinds(found[1]) == {
        FactKind.PATH: PATH,
        FactKind.NUMBER: "48213",
        FactKind.QUOTED: "upper bound",
    }
    assert all(holder.place == 0 for use in found[1] for holder in use.holders)


def test_what_the_prefix_says_and_what_comes_later_are_no_evidence() -> None:
    found = uses_of(
        [
            said(0, "user", f"See {PATH}."),
            said(1, "model", f"{PATH} and /etc/later.conf"),
            said(2, "result", "/etc/later.conf"),
        ],
        prefix=f"Files: {PATH}",
    )
    assert found[1] == ()


def test_a_command_is_used_when_the_same_line_runs_again() -> None:
    line = "make test-unit ARGS=fast"
    found = uses_of(
        [
            said(0, "user", "Go."),
            said(1, "call", "shell", line),
            said(2, "result", "failed"),
            said(3, "call", "shell", line),
        ]
    )
    (use,) = [use for use in found[3] if use.kind is FactKind.COMMAND]
    assert (use.fact, [holder.place for holder in use.holders]) == (line, [1])


def test_a_constraint_counts_at_the_first_answer_of_each_later_turn() -> None:
    rule = "Never touch the files under vendor, whatever happens."
    found = uses_of(
        [
            said(0, "user", rule),
            said(1, "model", "Fine."),
            said(2, "user", "Now rename the helper."),
            said(3, "model", "Done."),
            said(4, "model", "And cleaned."),
        ]
    )
    assert found[1] == ()
    assert kinds(found[3]) == {FactKind.CONSTRAINT: rule}
    assert found[4] == ()


def test_a_fact_is_whole_reachable_or_gone() -> None:
    found = uses_of([said(0, "result", f"{'x' * 50} {PATH}"), said(1, "model", PATH)])
    uses = found[1]
    assert judged(uses, RequestView(frozenset({0}))).whole == 1
    assert judged(uses, RequestView(frozenset(), (f"see {PATH}",))).whole == 1
    named = frozenset({"0.0"})
    assert judged(uses, RequestView(frozenset(), (), named, 16_000)).reachable == 1
    assert judged(uses, RequestView(frozenset(), (), named, 20)).gone == 1, "recall ends before it"
    assert judged(uses, RequestView(frozenset(), (), frozenset({"7.0"}), 16_000)).gone == 1
    assert nothing_shown(uses).gone == 1


def test_sums_keep_each_kind_apart() -> None:
    total = Fidelity()
    for fate in (0, 0, 1, 2):
        step = Fidelity()
        step.count(FactKind.PATH, fate)
        total.add(step)
    assert (total.whole, total.reachable, total.gone, total.share) == (2, 1, 1, 0.5)
    assert total.as_json()["by_kind"] == {"path": [2, 1, 1]}
    assert Fidelity().share == 1.0
