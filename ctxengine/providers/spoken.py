"""What a provider itself says in an error's body, apart from what it quotes of the request (providers.md 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MOST_CHARS = 20_000
"""Of a body or a message, what is looked at."""

_SPEAKS = frozenset(
    {
        *(
            "message",
            "msg",
            "status_msg",
            "error_message",
            "error_msg",
            "detail",
            "details",
            "title",
        ),
        *("error", "errors", "reason", "raw", "metadata", "desc"),
        *("code", "type", "status", "__type", "error_code", "error_type"),
    }
)
"""Members under which a provider speaks. Under any other (`input`, `value`, `param`, ...) it may quote the request."""
_HANDED_ON = _SPEAKS | {
    *("body", "innererror", "inner_error", "cause", "exception", "fault", "faultstring"),
    *("description", "error_description", "errormessage"),
}
"""The same where none of them says a sentence: then the answer of another server may stand under these."""
_HOLDERS = ("Response", "response", "error", "Error", "base_resp")
_FIGURES = ("n_prompt_tokens", "n_ctx")
_MOST_PARTS, _DEEPEST = 50, 6
_NESTED = 3
"""Servers that hand on one another's errors, each quoting the one before."""

_SAFE_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.]{1,63}")
_GROUPED = re.compile(r"(?<=\d)[,_\u00a0\u202f](?=\d{3}(?!\d))")
"""Between the thousands of a figure."""

_SENTENCE = re.compile(r"\S\s+\S|[^\x00-\x7f]")
"""Not in a mere code."""
_REQUEST = re.compile(r"[\"'](?:messages|contents|input|prompt|tools)\\?[\"']\s{0,9}:")
"""In what a server got, not in what it answers."""

_OPENS = re.compile(r"(?<![\w\\])[\"']|“")
_CLOSES: Mapping[str, re.Pattern[str]] = {
    '"': re.compile(r'(?:[^"\\]|\\.)*+"', re.DOTALL),
    # A single quote before a letter is an apostrophe.
    "'": re.compile(r"(?:[^'\\]|\\.|'(?=\w))*+'", re.DOTALL),
    "“": re.compile(r"[^”]*+”"),
}
_NAME_BEFORE = re.compile(r"(\w+)[\"']?\s{0,9}[:=]\s{0,9}[\[(]?\s{0,9}\Z")
_MOST_NAME_CHARS = 90
# What a KeyError holds is a name out of the request.
_TELLS_BEFORE = re.compile(
    r"(?:(?<!\bKey)Error|Exception)\(\s{0,9}\Z"
    r"|\b(?i:upstream|server|provider|backend|gateway|endpoint|host)(?: \w{1,20})?"
    r" (?:said|says|replied|answered|responded|returned)(?: with)?(?: (?:body|error|message))?:?\s{0,9}\Z"
)
"""Before another server's words, or an exception's."""
_TUPLE_OPENS = re.compile(r"\s*(?:\w*(?:(?<!\bKey)Error|Exception): )?\(\Z")
_TUPLE_CLOSES = re.compile(r"\s*,\s*\)\s*\Z")
"""Around the words of an exception that was given no more, in a text that is nothing else."""
_ESCAPED = re.compile(r"\\([\"'\\])")


def said(text: str, body: object) -> str:
    """The provider's own codes and messages, without what its error quotes; figures without marks between thousands.

    Args:
        text: the body as text.
        body: the same decoded; None where it is no JSON.
    """
    own = "\n".join(unquoted(part) for part in _taken(_parts(text, body)))
    return _GROUPED.sub("", own[:MOST_CHARS])


def _parts(text: str, body: object) -> Iterator[str]:
    inner, whole = error_of(body), body if isinstance(body, str) else text
    if not inner:
        yield whole
        return
    # Codes and figures are short: a long message must not crowd them out.
    yield from words_of(body)
    yield from _figures(inner)
    own = list(_taken(_voiced(inner, _DEEPEST)))
    yield from own
    if any(map(_SENTENCE.search, own)):
        return
    handed_on = list(_taken(_voiced(body, _DEEPEST, _HANDED_ON)))
    for part in handed_on or ([] if own else [whole]):
        if not _REQUEST.search(part[:MOST_CHARS]):
            yield part


def _taken(parts: Iterable[str]) -> Iterator[str]:
    """The parts up to `MOST_CHARS` in all; the rest is not looked for."""
    left = MOST_CHARS
    for part in parts:
        yield part[:left]
        left -= len(part) + 1
        if left <= 0:
            return


def voiced(text: str, body: object) -> str:
    """The same with the quotes that stand in a message itself."""
    inner = error_of(body)
    return "\n".join(_taken(_voiced(inner, _DEEPEST) if inner else [text]))


def unquoted(text: str, nested: int = _NESTED) -> str:
    """A text without its quotations, save what a server says in them: under a name (`'message': '...'`), in an exception.

    Such a quotation is another server's answer, handed on; it is read like the whole. A quotation whose end was cut off goes
    up to the end of the text.
    """
    kept, at = [], 0
    while opening := _OPENS.search(text, at):
        kept.append(text[at : opening.start()])
        closing = _CLOSES[opening[0]].match(text, opening.end())
        at = closing.end() if closing else len(text)
        quoted = text[opening.end() : at - 1 if closing else at]
        kept.append(f'"{_own_part(text, (opening.start(), at), quoted, nested)}"')
    return "".join([*kept, text[at:]])


def _own_part(text: str, place: tuple[int, int], quoted: str, nested: int) -> str:
    if quoted in _FIGURES:
        return quoted
    if not nested or not _tells(text, *place):
        return ""
    return unquoted(_ESCAPED.sub(r"\1", quoted), nested - 1)


def _tells(text: str, start: int, end: int) -> bool:
    """Whether a quotation, by what stands around it, is what a server says and not what it was sent."""
    before = text[max(0, start - _MOST_NAME_CHARS) : start]
    name = _NAME_BEFORE.search(before)
    if name is not None and name[1].lower() in _SPEAKS:
        return True
    if _TELLS_BEFORE.search(before):
        return True
    alone = start < _MOST_NAME_CHARS and _TUPLE_OPENS.match(before)
    return bool(alone) and _TUPLE_CLOSES.match(text, end) is not None


def _voiced(value: object, deep: int, names: frozenset[str] = _SPEAKS) -> Iterator[str]:
    """Every text that stands under members by which a provider speaks, and under nothing else."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and deep:
        for each in value[:_MOST_PARTS]:
            yield from _voiced(each, deep - 1, names)
    elif isinstance(value, Mapping) and deep:
        for name in list(value)[:_MOST_PARTS]:
            if str(name).lower() in names:
                yield from _voiced(value[name], deep - 1, names)


def _figures(inner: Mapping[str, Any]) -> Iterator[str]:
    for name in _FIGURES:
        if isinstance(inner.get(name), int):
            yield f'"{name}": {inner[name]}'


def error_of(body: object) -> Mapping[str, Any]:
    """The object that says what went wrong: by itself, under `error`, or within the event or the response that failed."""
    holder: Any = body
    if isinstance(holder, list) and holder:
        holder = holder[0]
    for within in _HOLDERS:
        if isinstance(holder, dict) and isinstance(holder.get(within), dict):
            holder = holder[within]
    kind = _exception_of(holder)
    if kind and isinstance(holder[kind], dict):
        holder = holder[kind]
    return holder if isinstance(holder, dict) else {}


def words_of(body: object) -> list[str]:
    """The provider's own words for the error, codes before types; only ones that can hold no content."""
    inner = error_of(body)
    places = (
        (inner.get("details"), "error_code"),
        (inner, "code"),
        (inner, "Code"),
        (inner, "type"),
        (inner, "status"),
        (body, "__type"),
    )
    found = [place.get(name) for place, name in places if isinstance(place, Mapping)]
    words = [_bare(word) for word in (*found, _exception_of(body)) if isinstance(word, str)]
    return [word for word in words if _SAFE_WORD.fullmatch(word)]


def _exception_of(body: object) -> str | None:
    """The name of an error that is told by the body's only member, as in Bedrock's streams."""
    if not isinstance(body, dict) or len(body) != 1:
        return None
    (name,) = body
    return name if isinstance(name, str) and name.endswith("Exception") else None


def _bare(word: str) -> str:
    """A name without the namespace before `#` and the address after `:` that AWS writes around it."""
    return word.rpartition("#")[2].partition(":")[0]
