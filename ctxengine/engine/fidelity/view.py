"""What one request shows, as far as facts are concerned, and what became of each fact that its answer uses."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxengine.engine.evidence.excerpt import limit_for
from ctxengine.engine.evidence.inline import InlineLimit
from ctxengine.engine.fidelity.facts import FactKind, Use
from ctxengine.engine.items import Unit
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.stretch import Stretch
from ctxengine.engine.wire.base import Fragment

_NAMED = re.compile(r'recall (?:it with id )?\\?"(\d+\.\d+)\\?"')


@dataclass(frozen=True, slots=True)
class RequestView:
    """One request as a reader of facts sees it."""

    whole: Collection[int]
    """Places of the transcript's messages that stand in it word for word."""
    texts: Sequence[str] = ()
    """Everything else it says: summaries, cards, excerpts, pointers, notices."""
    named: Collection[str] = frozenset()
    """Ids of items (`place.ordinal` of the transcript) that it names for a recall."""
    recall_chars: int = 0
    """Characters that one recall gives back; 0 where nothing can be recalled."""


@dataclass(slots=True)
class Fidelity:
    """Uses of facts by what the request held of them."""

    whole: int = 0
    reachable: int = 0
    """Not shown, but held by an item that the request names, within what one recall gives back."""
    gone: int = 0
    by_kind: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """(whole, reachable, gone) of each kind."""

    @property
    def uses(self) -> int:
        """All uses that were judged."""
        return self.whole + self.reachable + self.gone

    @property
    def share(self) -> float:
        """Uses whose fact was whole in the request, of all; 1 where nothing was used."""
        return self.whole / self.uses if self.uses else 1.0

    def count(self, kind: FactKind, fate: int, times: int = 1) -> None:
        """Add a use. `fate`: 0 whole, 1 reachable, 2 gone."""
        counts = list(self.by_kind.get(kind.value, (0, 0, 0)))
        counts[fate] += times
        self.by_kind[kind.value] = (counts[0], counts[1], counts[2])
        self.whole += times * (fate == 0)
        self.reachable += times * (fate == 1)
        self.gone += times * (fate == 2)

    def add(self, other: Fidelity) -> None:
        """Take in the uses of another step."""
        for kind, counts in other.by_kind.items():
            for fate, times in enumerate(counts):
                self.count(FactKind(kind), fate, times)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "whole": self.whole,
            "reachable": self.reachable,
            "gone": self.gone,
            "share": round(self.share, 4),
            "by_kind": {kind: list(counts) for kind, counts in sorted(self.by_kind.items())},
        }


def judged(uses: Iterable[Use], view: RequestView) -> Fidelity:
    """What a request held of the facts its answer uses."""
    found = Fidelity()
    for use in uses:
        found.count(use.kind, _fate(use, view))
    return found


def nothing_shown(uses: Iterable[Use]) -> Fidelity:
    """The same for a step whose request could not be built: every fact is gone."""
    return judged(uses, RequestView(frozenset()))


def _fate(use: Use, view: RequestView) -> int:
    if any(holder.place in view.whole for holder in use.holders):
        return 0
    if any(use.fact in text for text in view.texts):
        return 0
    for holder in use.holders:
        within = holder.offset + len(use.fact) <= view.recall_chars
        if within and f"{holder.place}.{holder.ordinal}" in view.named:
            return 1
    return 2


class ViewReader:
    """Reads built requests of one session; texts once read are kept by their digest."""

    def __init__(self, place_of: Mapping[int, int], recall_chars: int) -> None:
        """Read requests whose messages stand in the transcript at `place_of` their sequence."""
        self._place_of = place_of
        self._recall_chars = recall_chars
        self._texts: dict[str, str] = {}

    def view(self, request: ModelRequest) -> RequestView:
        """What a request shows."""
        whole: set[int] = set()
        texts: list[str] = []
        limit = request.plan.policy.inline
        for stretch in request.stretches:
            if not stretch.units:
                texts.append(self._text(stretch.digests[0], stretch.fragments))
                continue
            for place, unit in enumerate(stretch.units):
                shown = _whole_sequences(unit, stretch.form, limit)
                whole.update(self._place_of[s] for s in shown if s in self._place_of)
                if len(shown) < len({item.id.sequence for item in unit.items}):
                    own = _fragments_of(stretch, place)
                    texts.append(self._text(stretch.digests[place], own))
        named = {name for text in texts for name in _NAMED.findall(text)}
        return RequestView(whole, texts, self._in_transcript(named), self._recall_chars)

    def _in_transcript(self, named: Iterable[str]) -> set[str]:
        found = set()
        for name in named:
            sequence, _, ordinal = name.partition(".")
            place = self._place_of.get(int(sequence))
            if place is not None:
                found.add(f"{place}.{ordinal}")
        return found

    def _text(self, digest: str, fragments: Sequence[Fragment]) -> str:
        text = self._texts.get(digest)
        if text is None:
            text = self._texts[digest] = text_of_fragments(fragments)
        return text


def _fragments_of(stretch: Stretch, place: int) -> Sequence[Fragment]:
    before = stretch.bounds[0].fragments
    first = stretch.bounds[place].fragments - before
    return stretch.fragments[first : stretch.bounds[place + 1].fragments - before]


def _whole_sequences(unit: Unit, form: str, limit: InlineLimit) -> set[int]:
    """Sequences of a unit's messages that stand word for word: in `whole` form, results that are no excerpts."""
    if form != "whole":
        return set()
    cut = {int(i.id.sequence) for i in unit.items if limit_for(i, limit) is not None}
    return {int(item.id.sequence) for item in unit.items} - cut


def text_of_fragments(fragments: Sequence[Fragment]) -> str:
    """Every text in rendered fragments, as the model reads it."""
    found: list[str] = []
    for fragment in fragments:
        found += _strings(json.loads(b"[" + fragment.data + b"]"))
    return "\n".join(found)


def _strings(value: Any) -> Iterator[str]:
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            left += reversed(value)
        elif isinstance(value, dict):
            left += reversed(value.values())
