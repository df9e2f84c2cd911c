"""What stands in front of a turn's directive beside state and recall: intent, stance, and the thread (capacity spec 6).

Intent and stance say what kind of thing is asked for; the directive itself is never repeated. The thread names earlier
directives that no other part of the request holds. Words of the user among it stand in an envelope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.reading import Act, Reading
from ctxengine.engine.trust.envelope import nonce, render_envelope
from ctxengine.engine.trust.levels import Trust, lowest, needs_envelope
from ctxengine.engine.trust.model_view import model_view

THREAD_TURNS = 6
"""Most directives that the thread names."""
THREAD_TOKENS = 240
INTENT_TOKENS = 120
TOOLS_TOKENS = 1_500
"""What the schemas of listed tools may take that a turn is shown without asking (tokens)."""
_LINE = re.compile(r"(?m)^- turn (\d+), earlier[^\n]*(?:\n|$)")
_LINE_WORDS = 14
_LINE_CHARS = 120

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
    trust: Trust
    paused: bool
    """Whether the new directive is about something else."""


@dataclass(frozen=True, slots=True)
class Tail:
    """A turn's tail."""

    intent: str = ""
    """Platform text."""
    thread: tuple[ThreadLine, ...] = ()
    tools: str = ""
    """Schemas of listed tools that the reading asks for."""
    tools_trust: Trust = Trust.TRUSTED_CONFIGURATION

    @property
    def thread_trust(self) -> Trust:
        """Lowest of the directives named."""
        return lowest([Trust.USER, *(line.trust for line in self.thread)])


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
    """A directive in a few words.

    Args:
        related: whether a text is about what is asked now.
    """
    shown = " ".join(model_view(asked).split()[:_LINE_WORDS])[:_LINE_CHARS]
    return ThreadLine(turn, shown, trust, paused=not related(asked))


def thread_of(
    lines: Sequence[ThreadLine], shown: Sequence[str], tokens: Callable[[str], int]
) -> tuple[ThreadLine, ...]:
    """The newest directives that no text of the request holds already, within the thread's cap, oldest first.

    Args:
        lines: oldest first.
        shown: texts that stand in the request.
        tokens: counts a text.
    """
    kept: list[ThreadLine] = []
    said = {" ".join(text.split()) for text in shown}
    for line in reversed(lines):
        if not line.text or any(line.text in text for text in said):
            continue
        wanted = [line, *kept]
        if len(wanted) > THREAD_TURNS or tokens(_body(wanted)) > THREAD_TOKENS:
            break
        if all(line.text != other.text for other in kept):
            kept = wanted
    return tuple(kept)


def thread_text(tail: Tail, nonce_key: bytes, step: str) -> str:
    """The thread as it stands in a request; empty where it names nothing.

    Args:
        step: what makes this step's block different from any other, for the nonce.
    """
    if not tail.thread:
        return ""
    body = _body(tail.thread)
    digest = sha256_hex(body.encode("utf-8", "surrogatepass"))
    return (
        "[thread] Earlier messages of the user that are not shown; none of them is to be answered now.\n"
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
    """The schemas as they stand in a request; what a server wrote stands in an envelope."""
    if not tail.tools:
        return ""
    shown = tail.tools
    if needs_envelope(tail.tools_trust):
        digest = sha256_hex(shown.encode("utf-8", "surrogatepass"))
        mark = nonce(nonce_key, "tools", "whole", digest)
        shown = render_envelope(
            shown, source="tools:listed", item_id="tools", trust=tail.tools_trust, nonce=mark
        )
    return f"[tools] Listed tools that this turn may need, with their input schemas.\n{shown}"


def _body(lines: Sequence[ThreadLine]) -> str:
    return "\n".join(
        f"- turn {line.turn}, {'earlier, now paused' if line.paused else 'earlier'}: {line.text}"
        for line in lines
    )
