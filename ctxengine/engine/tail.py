"""What stands in front of a turn's directive beside state and recall: intent, stance, and the thread (capacity spec 6).

Intent and stance say what kind of thing is asked for; the directive itself is never repeated. The thread names earlier
directives that no other part of the request holds. Words of the user among it stand in an envelope.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.reading import Act, Reading
from ctxengine.engine.trust.envelope import nonce, render_envelope
from ctxengine.engine.trust.levels import Trust, lowest, needs_envelope
from ctxengine.engine.trust.lookalikes import TAG
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.trust.truncation import truncate_text

THREAD_TOKENS = 360
"""What the lines of the thread may take together (tokens)."""
LINE_TOKENS = 60
"""So much each line is given where others want more (tokens); as many turns are named as this leaves room for."""
INTENT_TOKENS = 120
TOOLS_TOKENS = 1_500
"""What listed tools may take that a turn is shown without asking, by schema or by name (tokens)."""
_LINE = re.compile(r"(?m)^- turn (\d+), earlier[^\n]*(?:\n|$)")
_THREAD = re.compile(
    rf'(?ms)^\[thread\] [^\n]*\n<{TAG} source="thread" id="thread" [^>\n]*nonce="([0-9a-f]+)"[^>\n]*>\n'
    rf"(.*?)\n</{TAG}:\1>$"
)
"""The thread in a block that was sent. What stands in other envelopes cannot pass for it: nothing escaped opens an envelope."""
_CARD_MARK = re.compile(r" \[\.\.\. ([\d,]+) more (word|character)s\]\Z")
"""How a card says that a directive goes on (`turns.card.short_form`)."""
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")
_WORD_END = re.compile(r"(?<=\S)(?=\s)")
_LETTERS_OF_A_WORD = 20
"""Text of longer words on average is no text of words: how much of it is left out is told in characters."""

_STANCES: Mapping[str, str] = {
    Act.ANSWER.value: "Say what is known and what it rests on; look up what is not.",
    Act.LOCATE.value: "Look it up, and say where it was found.",
    Act.ANALYSE.value: "Judge by what is at hand and can be looked up, and say what it rests on.",
    Act.MAKE.value: "Carry it out and say what was made.",
    Act.CHANGE.value: "Carry it out and say what was changed.",
    Act.OPERATE.value: "Carry it out and say what came of it.",
    Act.CONVERSE.value: "Answer in kind.",
}
_ANY_TOOL = "Every tool stays open to you, a card tool where a card says it best."
"""No stance forbids a tool that the message asks for."""
_UNCLEAR = "Where it is not clear what is meant, look at what is at hand before asking back."


class ThreadLine(NamedTuple):
    """One earlier directive."""

    turn: int
    text: str
    """On one line: the directive, or as much of it as there is room for."""
    trust: Trust
    paused: bool
    """Whether the new directive is about something else."""
    more: int = 0
    """How much of the directive is left out behind the text."""
    unit: str = "word"
    """What `more` counts: `word` or `character`."""


class Thread(NamedTuple):
    """Which earlier directives a request names."""

    lines: tuple[ThreadLine, ...] = ()
    """Oldest first."""
    unnamed: int = 0
    """Older ones that are not named: there was no room, they hold no words, or a later one says the very same."""


NO_THREAD = Thread()


@dataclass(frozen=True, slots=True)
class Tail:
    """A turn's tail."""

    intent: str = ""
    """Platform text."""
    thread: Thread = NO_THREAD
    tools: str = ""
    """Listed tools that the reading asks for."""
    tools_trust: Trust = Trust.TRUSTED_CONFIGURATION
    names_alone: bool = False
    """Whether `tools` gives no schema: there was room for none."""

    @property
    def thread_trust(self) -> Trust:
        """Lowest of the directives named."""
        return lowest([Trust.USER, *(line.trust for line in self.thread.lines)])


NO_TAIL = Tail()


def intent_text(reading: Reading) -> str:
    """Intent and stance of a reading, from closed lists of words alone: what the user or a runtime wrote never stands here."""
    act = reading.act if reading.act in _STANCES else ""
    told = [f"wants: {act}"] if act else []
    if reading.live:
        told.append("a value as it stands now, from this turn's own look-up")
    lines = [f"[intent] The message below {'; '.join(told)}."] if told else []
    stance = _STANCES.get(act, _UNCLEAR)
    if reading.uncertain and act and act != Act.CONVERSE.value:
        stance = f"{stance} {_UNCLEAR}"
    return "\n".join([*lines, f"[stance] {stance} {_ANY_TOOL}"])


def thread_line(
    turn: int, asked: str, trust: Trust, *, related: Callable[[str], bool]
) -> ThreadLine:
    """A directive as its card keeps it, on one line.

    Args:
        related: whether a text is about what is asked now.
    """
    text = " ".join(model_view(asked).split())
    mark = _CARD_MARK.search(text)
    more = int(mark[1].replace(",", "")) if mark else 0
    kept = text[: mark.start()] if mark else text
    unit = mark[2] if mark else "word"
    return ThreadLine(turn, kept, trust, paused=not related(asked), more=more, unit=unit)


def thread_of(
    lines: Sequence[ThreadLine],
    shown: Sequence[str],
    tokens: Callable[[str], int],
    *,
    blocks: Sequence[str] = (),
    before: int = 0,
) -> Thread:
    """The newest directives that no text of the request holds already, within the thread's tokens.

    Each is whole while the others leave it the room; else it ends behind a sentence or a word and says how much more there is.
    One that its card cuts is told whatever stands there: many begin alike.

    Args:
        lines: oldest first.
        shown: texts that stand in the request.
        tokens: counts a text.
        blocks: those of them that hold the thread of an earlier run; what it names is not named again.
        before: turns before these lines, of which nothing is looked at.
    """
    said = [" ".join(text.split()) for text in shown]
    named = {number for block in blocks for number in _named_in(block)}
    unseen = [
        line for line in reversed(lines) if line.turn not in named and not _stands_in(line, said)
    ]
    wanted = _different([line for line in unseen if line.text])
    costs: dict[int, int] = {}
    least = 0
    for line in wanted:
        cost = tokens(_line_text(line))
        least += min(cost, LINE_TOKENS)
        if least > THREAD_TOKENS:
            break
        costs[line.turn] = cost
    kept = _shared([line for line in wanted if line.turn in costs], costs, tokens)
    lines_kept = tuple(sorted(kept, key=lambda line: line.turn))
    return Thread(lines_kept, len(unseen) - len(kept) + before if kept else 0)


def _named_in(block: str) -> set[int]:
    """The turns that a block's own thread names; a line of any other text names none."""
    return {int(number) for _, body in _THREAD.findall(block) for number in _LINE.findall(body)}


def _different(lines: Sequence[ThreadLine]) -> list[ThreadLine]:
    """The first of those that say the very same; of a text that was cut nobody can tell."""
    whole: set[str] = set()
    found = []
    for line in lines:
        if line.more or line.text not in whole:
            found.append(line)
        if not line.more:
            whole.add(line.text)
    return found


def _shared(
    lines: Sequence[ThreadLine], costs: Mapping[int, int], tokens: Callable[[str], int]
) -> list[ThreadLine]:
    """The lines within the thread's tokens: the short ones whole, and what they leave in equal shares for the others."""
    left, kept = THREAD_TOKENS, []
    ordered = sorted(lines, key=lambda line: (costs[line.turn], -line.turn))
    for place, line in enumerate(ordered):
        share = left // (len(ordered) - place)
        fitting = line if costs[line.turn] <= share else _cut(line, share, tokens)
        if fitting is not None:
            kept.append(fitting)
            left -= tokens(_line_text(fitting))
    return kept


def _cut(line: ThreadLine, room: int, tokens: Callable[[str], int]) -> ThreadLine | None:
    """As much of a line as fits: whole sentences, unless whole words tell more than twice as much; None where nothing does."""
    sentences = _longest(line, [m.end() for m in _SENTENCE_END.finditer(line.text)], room, tokens)
    words = _longest(line, [m.start() for m in _WORD_END.finditer(line.text)], room, tokens)
    if sentences is not None and words is not None and 2 * len(sentences.text) < len(words.text):
        return words
    return sentences or words or _longest(line, range(1, len(line.text)), room, tokens)


def _longest(
    line: ThreadLine, ends: Sequence[int], room: int, tokens: Callable[[str], int]
) -> ThreadLine | None:
    """The line up to the last of these ends with which it fits."""
    places = range(len(ends))
    fitting = bisect_right(places, room, key=lambda at: tokens(_line_text(_ended(line, ends[at]))))
    return _ended(line, ends[fitting - 1]) if fitting else None


def _ended(line: ThreadLine, end: int) -> ThreadLine:
    kept = truncate_text(line.text, end)
    rest = line.text[len(kept) :].strip()
    words = len(rest.split())
    in_characters = (
        line.unit == "character" if line.more else len(rest) > words * _LETTERS_OF_A_WORD
    )
    if in_characters:
        return line._replace(text=kept, more=len(rest) + line.more, unit="character")
    return line._replace(text=kept, more=words + line.more)


def _stands_in(line: ThreadLine, said: Sequence[str]) -> bool:
    """Whether all of a directive stands in one of these texts, and not as part of a longer word."""
    if line.more or not line.text or not any(line.text in one for one in said):
        return False
    apart = re.compile(rf"(?<!\w){re.escape(line.text)}(?!\w)")
    return any(apart.search(one) for one in said)


def thread_text(tail: Tail, nonce_key: bytes, step: str) -> str:
    """The thread as it stands in a request; empty where it names nothing.

    Args:
        step: what makes this step's block different from any other, for the nonce.
    """
    lines, unnamed = tail.thread
    if not lines:
        return ""
    body = "\n".join(map(_line_text, lines))
    digest = sha256_hex(body.encode("utf-8", "surrogatepass"))
    older = f" {unnamed:,} older {'turn is' if unnamed == 1 else 'turns are'} not named here;"
    return (
        "[thread] Earlier messages of the user that are not shown; none of them is to be answered now."
        f"{f'{older} recall reads any turn by its number.' if unnamed else ''}\n"
        + render_envelope(
            body,
            source="thread",
            item_id="thread",
            trust=tail.thread_trust,
            nonce=nonce(nonce_key, f"thread:{step}", "whole", digest),
        )
    )


def without_turns(block: str, turns: Collection[int]) -> str:
    """A block that was sent earlier in the run, without the thread's lines of these turns."""
    return _LINE.sub(lambda line: "" if int(line[1]) in turns else line[0], block)


def tools_text(tail: Tail, nonce_key: bytes) -> str:
    """The listed tools as they stand in a request; what a server wrote stands in an envelope."""
    if not tail.tools:
        return ""
    shown = tail.tools
    if needs_envelope(tail.tools_trust):
        digest = sha256_hex(shown.encode("utf-8", "surrogatepass"))
        mark = nonce(nonce_key, "tools", "whole", digest)
        shown = render_envelope(
            shown, source="tools:listed", item_id="tools", trust=tail.tools_trust, nonce=mark
        )
    how = (
        "by name alone: there is no room here for their input schemas"
        if tail.names_alone
        else "with their input schemas"
    )
    return f"[tools] Listed tools that this turn may need, {how}.\n{shown}"


def _line_text(line: ThreadLine) -> str:
    since = "earlier, now paused" if line.paused else "earlier"
    unit = line.unit if line.more == 1 else f"{line.unit}s"
    cut = f" [... {line.more:,} more {unit}; recall turn {line.turn}]" if line.more else ""
    return f"- turn {line.turn}, {since}: {line.text}{cut}"
