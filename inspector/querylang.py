"""The query box: words and `field:value` terms, as one text that is also the address (ui 1.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.queries.cached import CacheBound

_TERM = re.compile(r'(?:(?P<field>[a-z_]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')
_ODD_TERM = re.compile(r"(?P<minus>-?)(?P<field>[A-Za-z_]+):")
_SHARE = re.compile(r"(?P<side>[<>])(?P<figure>[0-9]{1,3}(?:\.[0-9]{1,6})?)(?P<percent>%?)")
SHORT_TRUST = {
    "external": Trust.EXTERNAL_UNTRUSTED.value,
    "configuration": Trust.TRUSTED_CONFIGURATION.value,
    **{level.value.lower(): level.value for level in Trust},
}
"""Trust levels by the words that people type."""


class QueryError(ValueError):
    """A query that cannot be read; the message stands under the box."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query's free words and its terms."""

    words: tuple[str, ...]
    terms: Mapping[str, str]


def read_query(text: str, fields: tuple[str, ...], *, quotes: bool = False) -> Query:
    """Read a query.

    Args:
        text: what was typed.
        fields: names that may stand before a colon.
        quotes: keep the quotes of quoted words, where they mean a phrase.

    Raises:
        QueryError: a term names a field that this list has not, gives one no value or a second one, or writes it in another
            way (`-status:failed`, `Status:failed`), which would otherwise pass for a word.
    """
    words: list[str] = []
    terms: dict[str, str] = {}
    for match in _TERM.finditer(text):
        value = match["quoted"] if match["quoted"] is not None else match["plain"]
        name = match["field"]
        if name is None:
            _refuse_odd(match["plain"] or "", fields)
        if quotes and name is None:
            words.append(match.group())
            continue
        if name is None or (name not in fields and name in {"http", "https"}):
            words.append(match.group() if name else value)
            continue
        if name not in fields:
            known = ", ".join(f"{field}:" for field in fields)
            raise QueryError(f"There is no field {name}: here. Known are {known}.")
        if not value:
            raise QueryError(f"{name}: stands without a value.")
        if name in terms:
            raise QueryError(f"{name}: stands twice. Keep one.")
        terms[name] = value
    return Query(tuple(words), terms)


def _refuse_odd(word: str, fields: tuple[str, ...]) -> None:
    match = _ODD_TERM.match(word)
    if match is None or (name := match["field"].lower()) not in fields:
        return
    if match["minus"]:
        raise QueryError(f"{name}: cannot be left out by a minus. Ask for a value that it has.")
    if match["field"] != name:
        raise QueryError(f"Write {name}:, not {match['field']}:.")
    raise QueryError(f"{name}: stands without a value.")


def agreed(terms: Mapping[str, str], name: str, chosen: str) -> str:
    """The value of a field that the box and a select can both hold; empty where neither does.

    Raises:
        QueryError: they hold different ones.
    """
    typed = terms.get(name, "")
    if typed and chosen and typed != chosen:
        raise QueryError(f"{name}: is {typed} in the box, but {chosen} is chosen. Keep one.")
    return typed or chosen


def over(terms: Mapping[str, str], name: str) -> int | None:
    """The number of a `name:>N` term; None when there is none.

    Raises:
        QueryError: the term is not written that way.
    """
    value = terms.get(name)
    if value is None:
        return None
    match = re.fullmatch(r">?([0-9]{1,9})", value)
    if match is None:
        raise QueryError(f"Write {name}:>1, not {name}:{value}.")
    found = int(match[1])
    return found if value.startswith(">") else found - 1


def one_of_terms(terms: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> None:
    """Hold a term to a closed set of values.

    Raises:
        QueryError: it has another value.
    """
    value = terms.get(name)
    if value is not None and value not in allowed:
        raise QueryError(f"{name}: is {', '.join(allowed[:-1])} or {allowed[-1]}, not {value}.")


def trust_of(terms: Mapping[str, str]) -> str:
    """The level of a `trust:` term, in any case and by its short word; empty when there is none.

    Raises:
        QueryError: there is no such level.
    """
    value = terms.get("trust")
    if value is None:
        return ""
    level = SHORT_TRUST.get(value.lower())
    if level is None:
        known = "platform, configuration, user, model, memory or external"
        raise QueryError(f"trust: is {known}, not {value}.")
    return level


def cache_bound(terms: Mapping[str, str]) -> CacheBound | None:
    """The bound of a `cache:<0.9` or `cache:>50%` term; None when there is none.

    Raises:
        QueryError: the term is not written that way, or asks for more than everything.
    """
    value = terms.get("cache")
    if value is None:
        return None
    match = _SHARE.fullmatch(value)
    share = Decimal(match["figure"]) / (100 if match["percent"] else 1) if match else None
    if match is None or share is None or share > 1:
        raise QueryError(f"Write cache:<0.9 or cache:>50%, not cache:{value}.")
    return CacheBound(share, under=match["side"] == "<")
