"""What a directive asks for, read by its words alone: act, domains, entities, live data (capacity spec 5 and 7; design 7.11).

A runtime may send a reading of its own. Otherwise this small one is used; it is deterministic, and where it cannot tell it says
so: an uncertain reading stands for the orientation floor, never for everything. Domains are capabilities (`filesystem`, `web`,
`shell`, `memory`) or whatever the session's own tools say they serve; no topic is one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ctxengine.engine.reading_words import (
    ACT_WORDS,
    DOMAIN_WORDS,
    LEADING_NOW,
    LIVE_ADJECTIVE,
    LIVE_WORDS,
    LOCAL_WORDS,
    OWN_STATE,
    QUESTION_WORDS,
    TIME_ASKED,
)
from ctxengine.engine.turns.index_text import terms_of

READING_VERSION = "lexical@1"

ORIENTATION_FLOOR = ("filesystem", "memory")
"""Domains of an uncertain reading: enough to look around with."""
LIVE_DOMAIN = "live-data"
_MAX_CHARS = 8_000
"""Characters of a directive that are read."""
_MAX_ENTITIES = 24


class Act(StrEnum):
    """What kind of thing a directive asks for."""

    ANSWER = "answer"
    LOCATE = "locate"
    ANALYSE = "analyse"
    MAKE = "make"
    CHANGE = "change"
    OPERATE = "operate"
    CONVERSE = "converse"
    UNCLEAR = "unclear"


SEEKS_FACTS = frozenset({Act.ANSWER, Act.LOCATE, Act.ANALYSE})
"""Acts that a current value can be the answer to."""


class Reading(BaseModel):
    """A directive as it was read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    act: str = Field(default=Act.UNCLEAR.value, max_length=60)
    domains: tuple[str, ...] = Field(default=(), max_length=40)
    entities: tuple[str, ...] = Field(default=(), max_length=60)
    """Names and values that it is about, in its own words."""
    live: bool = False
    """Whether it asks for a value as it stands now."""
    uncertain: bool = False
    source: Literal["lexical", "runtime"] = "lexical"
    version: str = READING_VERSION

    @property
    def required_domains(self) -> tuple[str, ...]:
        """Domains that tools must serve to be shown for it."""
        if self.uncertain:
            return ORIENTATION_FLOOR
        return self.domains

    @property
    def extra_terms(self) -> tuple[str, ...]:
        """Words of what it is about, as its reader names it: tools are looked at by them beside the directive's own."""
        named = " ".join([*self.entities, *self.domains])
        return tuple(dict.fromkeys(terms_of(named)))


def read_directive(text: str, *, served: Collection[str] = ()) -> Reading:
    """Read a directive.

    Args:
        text: the user's newest message.
        served: what the session's tools say they serve; a directive that names one of these needs it.
    """
    shown = text[:_MAX_CHARS]
    words = frozenset(terms_of(shown))
    act = _act(shown, words)
    live = act in SEEKS_FACTS and is_live(shown)
    domains = {name for name, known in DOMAIN_WORDS.items() if words & known}
    domains |= {name for name in served if (parts := set(terms_of(name))) and parts <= words}
    if live:
        domains.add(LIVE_DOMAIN)
    return Reading(
        act=act.value,
        domains=tuple(sorted(domains)),
        entities=tuple(_entities(shown)),
        live=live,
        uncertain=act is Act.UNCLEAR or (act is not Act.CONVERSE and not domains),
    )


def is_live(text: str) -> bool:
    """Whether words of now belong to a thing of the outside world: not to this machine, the clock or the agent itself."""
    text = LEADING_NOW.sub("", text, count=1)
    if LIVE_WORDS.search(text) is None and LIVE_ADJECTIVE.search(text) is None:
        return False
    if TIME_ASKED.search(text) or OWN_STATE.search(text):
        return False
    return not frozenset(terms_of(text)) & LOCAL_WORDS


def _act(text: str, words: frozenset[str]) -> Act:
    """The first act whose words open the directive, else the first whose words stand in it, else a question."""
    opening = terms_of(text)[:4]
    for act, known in ACT_WORDS.items():
        if any(term in known for term in opening):
            return Act(act)
    if QUESTION_WORDS.search(text) is not None or text.rstrip().endswith(("?", "？", "؟")):
        return Act.ANSWER
    for act, known in ACT_WORDS.items():
        if words & known:
            return Act(act)
    # A bare noun phrase with a word of now is a question in all but form.
    return Act.ANSWER if LIVE_WORDS.search(text) is not None else Act.UNCLEAR


_QUOTED = re.compile(r"[\"“„«]([^\"”“»\n]{2,60})[\"”“»]|`([^`\n]{2,60})`")
_CODED = re.compile(r"\b(?:https?://\S+|[\w-]*[./_\d][\w./-]*\w)")
_NAMED = re.compile(r"(?<![.!?。]\s)(?<!^)\b[A-ZÀ-ÖØ-Þ][\w'’-]+(?:\s+[A-ZÀ-ÖØ-Þ][\w'’-]+)*")


def _entities(text: str) -> Iterable[str]:
    quoted = [first or second for first, second in _QUOTED.findall(text)]
    found = [*quoted, *_CODED.findall(text), *_NAMED.findall(text)]
    return list(dict.fromkeys(name[:80] for name in found))[:_MAX_ENTITIES]
