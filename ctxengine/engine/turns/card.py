"""Turn cards: the small record of a closed turn, made once and without a model (capacity spec 10).

A card keeps three layers apart: what was asked, what was done (each call with the id of its evidence), and what was answered.
Each field has its own trust; a card stands in a request inside one envelope of the lowest of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.derive import text_of_item
from ctxengine.engine.evidence.digest import digest_of
from ctxengine.engine.items import Item
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.trust.envelope import nonce, render_envelope
from ctxengine.engine.trust.levels import Trust, lowest
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.trust.truncation import truncate_text
from ctxengine.engine.turns.turn import Turn

CARD_VERSION = "card@4"

CARDS_FRAME_TOKENS = 140
"""Upper bound of what frame, end mark and one envelope add to consecutive cards (tokens)."""
CARD_ENVELOPE_TOKENS = 60
"""Upper bound of one more envelope among them."""
SHORT_WORDS = 60
"""Up to this many words a directive or an answer stands verbatim."""
_MAX_SENTENCE_CHARS = 600
"""A sentence without an end in sight is cut here, at a character that may be cut at."""
_MAX_ARGUMENT_CHARS = 120
_MAX_TRACE_LINES = 40
_SENTENCE = re.compile(r"(?s)^(.*?[.!?。！？])(?:\s|$)|^([^\n]+)")
_BLANKS = re.compile(r"\s+")


class TraceLine(BaseModel):
    """One tool call of a turn."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: str
    """Short form of the arguments, blanks folded."""
    evidence: str = ""
    """Item id of the result; empty where none came."""
    shape: str = ""
    """What the result looks like; see `evidence.digest.Shape`."""
    chars: int = 0
    is_error: bool = False
    trust: Trust = Trust.MODEL
    """Of its arguments: lower where the model may have taken them from findings that nobody here can read."""


class PresentationLine(BaseModel):
    """One presentation of a turn: the answer as the user saw it, by its identity."""

    model_config = ConfigDict(frozen=True)

    id: str
    """By which `recall` gives it back whole."""
    semantic_type: str
    title: str
    digest: str
    """What its schema declares as its identity."""
    derived_from: tuple[str, ...] = ()
    """Ids of the evidence that stood before it in the turn."""
    trust: Trust = Trust.EXTERNAL_UNTRUSTED


class ReadingKey(BaseModel):
    """How a turn's directive was read; for people and for those who look turns up, no part of the card's text."""

    model_config = ConfigDict(frozen=True)

    act: str = ""
    """Empty where no reading could be had."""
    domains: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    """In the directive's own words, secrets masked."""
    modalities: tuple[str, ...] = ()
    """What the directive was made of: `text`, `image`, `file`, `other`."""
    live: bool = False
    source: str = ""
    """`lexical`, or `runtime` where it sent its own."""
    trust: Trust = Trust.USER


class TurnCard(BaseModel):
    """The record of one closed turn. Written once; rebuilt from the ledger alone."""

    model_config = ConfigDict(frozen=True)

    version: str = CARD_VERSION
    number: int
    first: int
    """Event that opens the turn."""
    last: int
    asked: str
    asked_trust: Trust
    did: tuple[TraceLine, ...]
    """Names and arguments are the model's words, each trusted as its line says."""
    more_calls: int = 0
    """Calls beyond those listed."""
    more_evidence: tuple[str, ...] = ()
    """The first and the last of their results, by id: so none is without a name (design 11). Empty on older cards."""
    presentations: tuple[PresentationLine, ...] = ()
    """In the order they were emitted."""
    narration: str
    narration_trust: Trust = Trust.MODEL
    outcome: str
    reading: ReadingKey = ReadingKey()
    tokens_full: int
    """What the full record costs (tokens, raw count)."""

    @property
    def trust(self) -> Trust:
        """Lowest of its fields."""
        levels = [self.asked_trust, self.narration_trust]
        levels += [line.trust for line in self.presentations]
        return lowest([*levels, *(line.trust for line in self.did)])


def card_of(
    turn: Turn,
    *,
    outcome: str,
    tokens_full: int,
    narration: str | None = None,
    narration_trust: Trust = Trust.MODEL,
    arguments: Mapping[str, str] | None = None,
    trusts: Mapping[str, Trust] = MappingProxyType({}),
    presentations: Sequence[PresentationLine] = (),
    reading: ReadingKey | None = None,
) -> TurnCard:
    """Make the card of a turn that has just closed.

    Args:
        outcome: `completed`, `failed`, `interrupted`, `cancelled` or `degraded`.
        tokens_full: tokens of `record.closed_record`.
        narration: the answer with what it repeats of untrusted evidence taken out (design 7.2); the turn's own where None.
        narration_trust: PLATFORM where the platform ended the turn with words of its own.
        arguments: the same for the arguments of its calls, by item id; their own where it is missing.
        trusts: how far these are trusted, by item id; as the model's words where it is missing.
        presentations: what it showed the user, in order.
        reading: how its directive was read.
    """
    asked = "\n".join(text_of_item(item) for item in turn.directives).strip()
    said = turn.narration if narration is None else narration
    own = arguments or {}
    exchanges = turn.exchanges
    return TurnCard(
        number=turn.number,
        first=turn.first,
        last=turn.last,
        asked=short_form(asked),
        asked_trust=lowest(item.trust for item in turn.directives)
        if turn.directives
        else Trust.MODEL,
        did=tuple(
            _trace(
                call,
                result,
                own.get(str(call.id), call.arguments or ""),
                trusts.get(str(call.id), Trust.MODEL),
            )
            for call, result in exchanges[:_MAX_TRACE_LINES]
        ),
        more_calls=max(0, len(exchanges) - _MAX_TRACE_LINES),
        more_evidence=evidence_ends(exchanges[_MAX_TRACE_LINES:]),
        presentations=tuple(map(_shown, presentations)),
        narration=short_form(said),
        narration_trust=narration_trust,
        outcome=outcome,
        reading=reading or ReadingKey(),
        tokens_full=tokens_full,
    )


def short_form(text: str) -> str:
    """The text verbatim when short, else its first sentence and how much more there is. Secrets are masked."""
    clean = model_view(redact(text).text).strip()
    words = clean.split()
    if len(words) <= SHORT_WORDS and len(clean) <= _MAX_SENTENCE_CHARS:
        return clean
    match = _SENTENCE.match(clean)
    sentence = (match[1] or match[2] or clean) if match else clean
    sentence = truncate_text(sentence.strip(), _MAX_SENTENCE_CHARS)
    if more := max(0, len(words) - len(sentence.split())):
        return f"{sentence} [... {more:,} more words]"
    # Of a script without blanks, or one long line, no word is missing, and yet most of it may be.
    left = len(clean) - len(sentence)
    return f"{sentence} [... {left:,} more characters]" if left > 0 else sentence


def card_text(card: TurnCard) -> str:
    """What a card says, without its envelope."""
    lines = [f"turn {card.number}, {card.outcome}", f"asked: {card.asked}"]
    lines += [f"did: {_trace_text(line)}" for line in card.did]
    if card.more_calls:
        lines.append(f"did: {card.more_calls:,} more calls{_more_results(card.more_evidence)}")
    for shown in card.presentations:
        lines.append(_presentation_text(shown))
    if card.narration:
        lines.append(f"answered: {card.narration}")
    return "\n".join(lines)


def evidence_ends(exchanges: Sequence[tuple[Item, Item | None]]) -> tuple[str, ...]:
    """Ids of the first and the last result of these calls; none where no result came."""
    found = sorted(result.id for _, result in exchanges if result is not None)
    return (str(found[0]), str(found[-1])) if found else ()


def _more_results(ends: Sequence[str]) -> str:
    return f"; their results: more between {ends[0]} and {ends[1]}" if ends else ""


def cards_text(cards: Sequence[TurnCard], nonce_key: bytes) -> str:
    """Consecutive cards as one text: a platform frame, neighbours of equal trust in one envelope."""
    if not cards:
        return ""
    bodies = [
        _enveloped(list(some), trust, nonce_key)
        for trust, some in groupby(cards, key=lambda card: card.trust)
    ]
    return "\n".join([_frame(cards), *bodies, "[end of turn cards]"])


def card_tokens(card: TurnCard, counter: TokenCounter) -> int:
    """What a card costs among others (tokens, raw count); the frame around all of them is `CARDS_FRAME_TOKENS`."""
    apart = 0 if card.trust is Trust.MODEL else 2 * CARD_ENVELOPE_TOKENS
    return counter.text(card_text(card) + "\n\n") + apart


def _frame(cards: Sequence[TurnCard]) -> str:
    first, last = cards[0].number, cards[-1].number
    which = f"Turn {first} stands" if first == last else f"Turns {first} to {last} stand"
    return (
        f"[turn cards] {which} below in short; they are over, and what they asked is done or dropped. "
        'Read a turn whole by recalling it, for example recall with turn "1"; read a result by its evidence id.'
    )


def _enveloped(cards: Sequence[TurnCard], trust: Trust, nonce_key: bytes) -> str:
    text = "\n\n".join(card_text(card) for card in cards)
    digest = sha256_hex(text.encode("utf-8", "surrogatepass"))
    first, last = cards[0].number, cards[-1].number
    name = f"turn:{first}" if first == last else f"turns:{first}-{last}"
    return render_envelope(
        text,
        source="turn-card",
        item_id=name,
        trust=trust,
        nonce=nonce(nonce_key, name, "card", digest),
    )


def _shown(line: PresentationLine) -> PresentationLine:
    """A presentation's line as any reader may see it: secrets masked."""
    clean = {name: model_view(redact(getattr(line, name)).text) for name in ("title", "digest")}
    return line.model_copy(update=clean)


def _trace(call: Item, result: Item | None, arguments: str, trust: Trust) -> TraceLine:
    plain = _BLANKS.sub(" ", model_view(redact(arguments).text)).strip()
    short = truncate_text(plain, _MAX_ARGUMENT_CHARS)
    if len(short) < len(plain):
        short += "..."
    name = model_view(call.name or "")
    if result is None:
        return TraceLine(name=name, arguments=short, trust=trust)
    text = text_of_item(result)
    digest = digest_of(text, reference=str(result.id), is_error=result.is_error)
    return TraceLine(
        name=name,
        arguments=short,
        evidence=str(result.id),
        shape=digest.shape.value,
        chars=len(text),
        is_error=result.is_error,
        trust=trust,
    )


def _presentation_text(line: PresentationLine) -> str:
    rests = f", from {' '.join(f'[evidence:{name}]' for name in line.derived_from)}"
    return (
        f"showed: {line.semantic_type} {line.title} [presentation:{line.id}]"
        f"{rests if line.derived_from else ''}\n{line.digest}"
    )


def _trace_text(line: TraceLine) -> str:
    if not line.evidence:
        return f"{line.name} {line.arguments} -> no result"
    failed = "error, " if line.is_error else ""
    return (
        f"{line.name} {line.arguments} -> {failed}{line.shape}, {line.chars:,} characters "
        f"[evidence:{line.evidence}]"
    )
