"""Finding untrusted text that was repeated word for word (design 7.2).

A run of 32 characters or more that stood in earlier untrusted content, and that neither the user nor a call brought up before,
is that content, whoever says it. Only such runs are found: a paraphrase is the speaker's own claim.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.trust.envelope import escape
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view

LEAST_CHARS = 32
"""Shortest shared run that counts (characters)."""

_GRAM = 16
"""Every run of 31 characters or more holds one whole block of 16 that starts at a multiple of 16."""
_OFFSETS_PER_GRAM = 32
_MAX_JSON_CHARS = 1_000_000
_STEP = 64


class Untrusted(NamedTuple):
    """Untrusted content of the session, as far as it is text."""

    item: ItemId
    kind: str
    """What its pointer calls it, for example `tool.result`."""
    trust: Trust
    bytes_len: int
    text: str
    unseen: bool = False
    """Whether a model said it itself, knowing findings that nobody here can read: it may tell of them word for word."""


class Said(NamedTuple):
    """A text that may repeat something."""

    sequence: EventSeq
    """Only what came before it counts as its source, or with it: a provider's own tools answer within an answer."""
    text: str


class Run(NamedTuple):
    """A stretch of a text that stood elsewhere before."""

    start: int
    end: int
    source: Untrusted


class Brought(NamedTuple):
    """Texts that make a run somebody's own: what the user wrote, and what calls asked for before the content came."""

    user: Callable[[], str]
    """All the user's words, joined; asked for only when something was found."""
    arguments_before: Callable[[EventSeq], str]
    """Arguments of calls made before a sequence, joined."""


NOTHING_BROUGHT = Brought(lambda: "", lambda _: "")


def repeated_runs(
    texts: Sequence[Said], content: Iterable[Untrusted], brought: Brought = NOTHING_BROUGHT
) -> list[list[Run]]:
    """For each text the runs it repeats, in order and without overlap.

    `content` is read once; it may be as long as the session.
    """
    finder = _Finder(texts, brought)
    for entry in content:
        for shown in _forms(entry.text):
            finder.look(entry, shown)
    return [_tidy(runs) for runs in finder.runs]


def replace_runs(text: str, runs: Sequence[Run], replacement: Callable[[Untrusted], str]) -> str:
    """The text with each run replaced by what stands for its source."""
    pieces, at = [], 0
    for run in runs:
        pieces += [text[at : run.start], replacement(run.source)]
        at = run.end
    return "".join([*pieces, text[at:]])


def _forms(text: str) -> list[str]:
    """The text as received and, where they differ, as a model was shown it and as the strings that JSON in it means."""
    if len(text) < LEAST_CHARS:
        return []
    forms = {text: None, escape(model_view(text)): None}
    if text.lstrip()[:1] in {"{", "["} and len(text) <= _MAX_JSON_CHARS:
        meant = "\n".join(_strings(text))
        forms |= {meant: None, escape(model_view(meant)): None}
    return list(forms)


def _strings(text: str) -> list[str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    found: list[str] = []
    waiting = [value]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, str):
            found.append(entry)
        elif isinstance(entry, dict):
            waiting += [*entry.values(), *entry]
        elif isinstance(entry, list):
            waiting += entry
    return found


class _Finder:
    """The texts' blocks by content; evidence streams past them."""

    def __init__(self, texts: Sequence[Said], brought: Brought) -> None:
        self._texts = texts
        self._brought = brought
        self.runs: list[list[Run]] = [[] for _ in texts]
        self._seen = [bytearray(len(said.text)) for said in texts]
        self._grams: dict[str, list[tuple[int, int]]] = {}
        for place, said in enumerate(texts):
            for offset in range(len(said.text) - _GRAM + 1):
                gram = said.text[offset : offset + _GRAM]
                places = self._grams.setdefault(gram, [])
                if len(places) < _OFFSETS_PER_GRAM:
                    places.append((place, offset))

    def look(self, entry: Untrusted, text: str) -> None:
        """Record what the texts repeat of this content."""
        if not self._grams:
            return
        for at in range(0, len(text) - _GRAM + 1, _GRAM):
            for place, offset in self._grams.get(text[at : at + _GRAM], ()):
                said = self._texts[place]
                if said.sequence < entry.item.sequence:
                    continue
                if self._seen[place].find(0, offset, offset + _GRAM) < 0:
                    continue
                self._extend(entry, text, at, place, offset)

    def _extend(self, entry: Untrusted, text: str, at: int, place: int, offset: int) -> None:
        said = self._texts[place].text
        left = _shared_end(said[:offset], text[max(0, at - offset) : at])
        right = _shared_start(said[offset:], text[at : at + len(said) - offset])
        start, end = offset - left, offset + right
        if end - start < LEAST_CHARS or _is_rule(said[start:end]):
            return
        self._seen[place][start:end] = b"\x01" * (end - start)
        if not self._own(said[start:end], entry.item.sequence):
            self.runs[place].append(Run(start, end, entry))

    def _own(self, run: str, sequence: EventSeq) -> bool:
        return is_covered(run, self._brought.user()) or is_covered(
            run, self._brought.arguments_before(sequence)
        )


def is_covered(run: str, text: str) -> bool:
    """Whether a run is made of stretches of a text, but for less than what counts as a run."""
    if run in text:
        return True
    at = missed = 0
    while at < len(run) and missed < LEAST_CHARS:
        if run[at : at + LEAST_CHARS] not in text:
            missed, at = missed + 1, at + 1
            continue
        length = LEAST_CHARS
        while at + length < len(run) and run[at : at + 2 * length] in text:
            length = min(2 * length, len(run) - at)
        at += length
    return missed < LEAST_CHARS


def _is_rule(run: str) -> bool:
    """A ruled line, an indent: one or two characters over and over carry no message."""
    return len(set(run)) <= 2


def _shared_start(one: str, other: str) -> int:
    length, most = 0, min(len(one), len(other))
    while length < most and one[length : length + _STEP] == other[length : length + _STEP]:
        length = min(most, length + _STEP)
    while length < most and one[length] == other[length]:
        length += 1
    return length


def _shared_end(one: str, other: str) -> int:
    length, most = 0, min(len(one), len(other))
    while length < most and one[-1 - length] == other[-1 - length]:
        length += 1
    return length


def _tidy(runs: list[Run]) -> list[Run]:
    """Sorted, overlaps joined under the source that was found first."""
    joined: list[Run] = []
    for run in sorted(runs):
        if joined and run.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Run(last.start, max(last.end, run.end), last.source)
        else:
            joined.append(run)
    return joined
