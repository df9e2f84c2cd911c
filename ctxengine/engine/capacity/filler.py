"""The ladder's synthetic history: turns shaped like real ones, ending in one instruction (capacity spec 1).

Rungs are strict prefixes of one another, so a ladder pays for about one reading of its largest rung where prefixes are cached.
Only the last message differs from sample to sample: it carries a nonce, so that a copied older answer cannot pass. Texts vary
from turn to turn, since small models continue patterns instead of following instructions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

PROBE_TOOL = "probe_ack"
LOOKUP_TOOL = "lookup"
MAX_OUTPUT_TOKENS = 96
"""Room for the call: less cuts a call that is written as text."""

_SUBJECTS = (
    "the retry settings", "the second table", "the slow test", "the renamed column", "the build log",
    "the cover letter", "the seating plan", "the parser's grammar", "the budget sheet", "the map legend",
    "the rota", "the glossary", "the index page", "the packing list", "the survey answers", "the invoice",
)  # fmt: skip
_ASKS = (
    "What does {s} say about {w}?", "Please look up {s} and tell me about {w}.", "Is {w} mentioned in {s}?",
    "Check {s} once more: what became of {w}?", "Compare {w} with what {s} has.",
)  # fmt: skip
_WORDS = (
    "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "inlet", "juniper", "kettle",
    "ledger", "meadow", "nickel", "orchard", "pebble", "quarry", "ridge", "spruce", "timber", "umbra",
    "valley", "willow", "yarrow", "zephyr", "anchor", "bracket", "copper", "drawer", "engine",
)  # fmt: skip
_RESULT_LINES = 14


class FillerTurn(NamedTuple):
    """One closed turn: question, call, result in digest shape, answer."""

    question: str
    call_id: str
    arguments: str
    result: str
    answer: str


class Instruction(NamedTuple):
    """What the last message asks for, and what a sample that follows it must contain."""

    text: str
    code: str
    amount: int


def filler_turns() -> Iterator[FillerTurn]:
    """Turns without end, always the same ones."""
    number = 0
    while True:
        yield _turn(number)
        number += 1


def turns_for(tokens: int, cost: Callable[[FillerTurn], int], fixed: int) -> list[FillerTurn]:
    """The longest head of the filler that fits.

    Args:
        tokens: size of the whole prompt.
        cost: tokens of one turn.
        fixed: tokens of system text, tools and instruction.
    """
    turns: list[FillerTurn] = []
    room = tokens - fixed
    for turn in filler_turns():
        room -= cost(turn)
        if room < 0:
            return turns
        turns.append(turn)
    return turns


def instruction(nonce: str) -> Instruction:
    """The instruction of one sample.

    Args:
        nonce: random hex digits of this sample, at least eight.
    """
    code = nonce[:8]
    amount = 2 + int(nonce[:8], 16) % 7
    # The call and nothing beside it: whoever is also asked to confirm something confirms it in words.
    arguments = f'{{"code": "{code}", "count": {amount}}}'
    text = f"Now call {PROBE_TOOL} with {arguments}. Do not answer in words."
    return Instruction(text, code, amount)


def _turn(number: int) -> FillerTurn:
    pick = _picker(number)
    subject, word, other = pick(_SUBJECTS), pick(_WORDS), pick(_WORDS)
    evidence = f"f{number:05x}"
    result = _RESULTS[number % len(_RESULTS)](pick, word)
    return FillerTurn(
        question=pick(_ASKS).format(s=subject, w=word),
        call_id=f"call_{evidence}",
        arguments=f'{{"what": "{subject}", "about": "{word}"}}',
        result=f"{result}\n[evidence:{evidence} — {len(result) * 9} chars; call recall to expand]",
        answer=f"{subject.capitalize()} puts {word} next to {other}; {_number(pick)} entries agree on it.",
    )


Picker = Callable[[tuple[str, ...]], str]


def _picker(number: int) -> Picker:
    state = hashlib.sha256(f"{number}".encode()).digest()
    place = 0

    def pick(words: tuple[str, ...]) -> str:
        nonlocal place, state
        if place + 2 > len(state):
            state, place = hashlib.sha256(state).digest(), 0
        value = int.from_bytes(state[place : place + 2], "big")
        place += 2
        return words[value % len(words)]

    return pick


_DIGITS = tuple(str(n) for n in range(100, 1000, 7))


def _number(pick: Picker) -> str:
    return pick(_DIGITS)


def _json_lines(pick: Picker, word: str) -> str:
    rows = ",\n".join(
        f'  {{"id": {_number(pick)}, "name": "{pick(_WORDS)}-{word}", "size": {_number(pick)}, "kept": true}}'
        for _ in range(_RESULT_LINES // 2)
    )
    return f'{{"total": {_number(pick)}, "rows": [\n{rows}\n]}}'


def _log_lines(pick: Picker, word: str) -> str:
    return "\n".join(
        f"10:{_number(pick)[:2]}:{_number(pick)[:2]} {pick(_WORDS)}[{_number(pick)}]: "
        f"{word} {pick(_WORDS)} took {_number(pick)} ms"
        for _ in range(_RESULT_LINES)
    )


def _prose_lines(pick: Picker, word: str) -> str:
    return "\n".join(
        f"The {pick(_WORDS)} behind the {word} was moved to the {pick(_WORDS)} in week {_number(pick)[:2]}."
        for _ in range(_RESULT_LINES // 2)
    )


def _listing_lines(pick: Picker, word: str) -> str:
    return "\n".join(
        f"{pick(_WORDS)}/{pick(_WORDS)}_{word}.txt:{_number(pick)}: {pick(_WORDS)} = {pick(_WORDS)}({_number(pick)})"
        for _ in range(_RESULT_LINES)
    )


_RESULTS = (_json_lines, _log_lines, _prose_lines, _listing_lines)
