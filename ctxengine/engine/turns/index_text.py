"""What a turn is found by: the words of its card and of its calls' arguments (capacity spec 10, index text)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ctxengine.engine.lexeme import LexemeError, parse
from ctxengine.engine.presentations.payload import canonical_payload, strings_of
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.turns.own_words import OwnWords
from ctxengine.engine.turns.terms import found_by
from ctxengine.engine.turns.turn import Turn

MAX_TERMS = 8_000
"""Different terms kept of one turn: those of what was asked, said and shown first, then those of its calls in their order."""
_MAX_ARGUMENT_CHARS = 40_000
_MAX_TEXT_CHARS = 40_000
_ESCAPED_QUOTE = re.compile(r"(?<!\\)\\+([\"'])")
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_BLANKS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


def terms_of(text: str) -> list[str]:
    """Words in lower case; identifiers in their parts as well; scripts without blanks in pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(text[:_MAX_TEXT_CHARS]):
        if _NO_BLANKS.search(word):
            pairs = [word[place : place + 2] for place in range(max(1, len(word) - 1))]
            found.extend(pairs)
            continue
        parts = _CAMEL.split(word)
        if len(parts) > 1:
            found.extend(part.casefold() for part in parts)
        found.append(word.casefold())
    return found


def index_terms(
    turn: Turn,
    *,
    asked: str,
    words: OwnWords,
    shown: Iterable[str] = (),
) -> Counter[str]:
    """Terms of a turn with how often each occurs: asked, said, shown, tool names, and the texts in call arguments.

    Args:
        asked: the whole directive.
        words: its prose and its calls' arguments, without what they repeat of untrusted evidence.
        shown: titles, labels, values and takeaways of what it showed the user.
    """
    said = words.prose
    texts = [asked, *(said.get(str(item.id), "") for item in turn.prose), *shown]
    for call, _ in turn.exchanges:
        own = words.arguments.get(str(call.id), "")
        texts.append(" ".join([call.name or "", *_texts(own)]))
    counted: Counter[str] = Counter()
    for text in texts:
        for term in found_by(_masked(text)):
            if term in counted or len(counted) < MAX_TERMS:
                counted[term] += 1
    return counted


def _masked(text: str) -> str:
    """The text without secrets, those too whose member's name stands in JSON inside a text, its quotes escaped."""
    return redact(_ESCAPED_QUOTE.sub(r"\1", text)).text


def _texts(arguments: str) -> Iterable[str]:
    """The texts and numbers of a call's arguments; all of what is no JSON, or long. Secrets are masked.

    They are masked while the names of members still stand beside them: some are known by nothing else.
    """
    try:
        # Written anew, a name is found whatever escapes it was written with.
        clean = redact(canonical_payload(parse(arguments))).text
    except LexemeError:
        return [_masked(arguments)[:_MAX_ARGUMENT_CHARS]]
    if len(clean) > _MAX_ARGUMENT_CHARS:
        return [_masked(clean)[:_MAX_ARGUMENT_CHARS]]
    try:
        return strings_of(parse(clean))
    except LexemeError:
        return [clean]
