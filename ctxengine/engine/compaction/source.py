"""What a summariser gets: the words of the user and the model, calls, and pointers for everything else.

Nothing untrusted passes: results are pointers, text that repeats them word for word is replaced by them, secrets are masked
(design 7.2, 7.15 and 8).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ctxengine.engine.canonical import digest_of
from ctxengine.engine.compaction.elision import (
    ElidedSpan,
    holds_more,
    is_readable,
    named,
    pointer_line,
    span_of,
)
from ctxengine.engine.compaction.evidence_texts import beside_unseen, evidence_texts, words_of
from ctxengine.engine.compaction.parrot import (
    LEAST_CHARS,
    Brought,
    Run,
    Said,
    Untrusted,
    repeated_runs,
    replace_runs,
)
from ctxengine.engine.control.table import control_rule
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.engine.items import Item, ItemKind, TextPart, Unit
from ctxengine.engine.lexeme import LexemeError, NodeKind, parse
from ctxengine.engine.redaction.patterns import DETECTOR_VERSION
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view

_MAX_STRINGS = 64


class Statement(BaseModel):
    """Something the user or the model said."""

    model_config = ConfigDict(frozen=True)

    item_id: str
    trust: Trust
    text: str
    answered: bool = True
    """For a user's message: whether the model spoke after it."""
    final: bool = False
    """For the model: whether it said this without calling a tool in the same breath."""
    instruction: bool = False
    """Whether a parent run told its child this: asked for, but not by the user."""


class CallNote(BaseModel):
    """A call as far as it may be told: the tool and the texts among its arguments."""

    model_config = ConfigDict(frozen=True)

    item_id: str
    name: str
    texts: tuple[tuple[str, str], ...] = ()
    """(member name, text) of its string arguments, outermost first."""


class SummarySource(BaseModel):
    """One exact range of a session, ready for a summariser. `digest` tells two states of it apart."""

    model_config = ConfigDict(frozen=True)

    first_sequence: int
    through_sequence: int
    """Last sequence the range covers: one before the unit that follows."""
    turns: int
    units: int
    tokens: int
    """What the range costs a request now."""
    statements: tuple[Statement, ...]
    calls: tuple[CallNote, ...]
    elided: tuple[ElidedSpan, ...]
    source_event_ids: tuple[int, ...]
    masked: int = 0
    """Secrets masked on the way in."""
    detector: str = DETECTOR_VERSION
    retold: bool = False
    """Whether its statements are summaries, to be told as one."""
    earlier: str = Field(default="", exclude=True)
    """What a stored summary tells of the turns before, where one is to go on from it; no part of the range or its digest."""
    digest: str = ""


def source_of(
    units: Sequence[Unit],
    *,
    first: EventSeq,
    through: EventSeq,
    tokens: int,
    untrusted: Iterable[Untrusted],
    brought: Brought,
    tools: Collection[str] = (),
) -> SummarySource:
    """Everything of these units that may be read.

    Args:
        units: the units that start in [first, through].
        untrusted: all untrusted text of the session before the range's end, oldest first.
        brought: what makes a repeated run somebody's own.
        tools: names of tools that the plan pins; pointers tell them.
    """
    reader = _Reader()
    for unit in units:
        reader.take(unit)
    hidden: set[ItemId] = set()
    reader.replace(repeated_runs(reader.said, noting_unseen(untrusted, hidden), brought), hidden)
    source = SummarySource(
        first_sequence=first,
        through_sequence=through,
        turns=sum(unit.items[0].kind is ItemKind.USER_MESSAGE for unit in units),
        units=len(units),
        tokens=tokens,
        statements=tuple(reader.statements()),
        calls=tuple(reader.calls()),
        elided=tuple(reader.elided(hidden)),
        source_event_ids=tuple(sorted(reader.sources)),
        masked=reader.masked,
    )
    # The names are the plan's: another epoch makes no other source of the same range.
    digest = digest_of(source.model_dump(mode="json", exclude={"elided": {"__all__": {"tool"}}}))
    items = (item for unit in units for item in unit.items)
    return source.model_copy(
        update={"digest": digest, "elided": named(source.elided, items, tools)}
    )


def untrusted_of(units: Iterable[Unit]) -> Iterable[Untrusted]:
    """The untrusted texts among units, in their order: of results, of foreign items, and what a provider's own tools gave.

    What a model said knowing findings that nobody here can read is among them: it may be these.
    """
    for unit, unseen in beside_unseen(units):
        for item in unit.items:
            kind, models = span_of(item).kind, item.trust is Trust.MODEL
            # What a provider's tool found stands in the model's answer, and is no word of the model's.
            trust = Trust.EXTERNAL_UNTRUSTED if models else item.trust
            for text in evidence_texts(item):
                yield Untrusted(item.id, kind, trust, item.bytes_len, text)
            if unseen and models and (said := words_of(item)):
                yield Untrusted(item.id, kind, trust, item.bytes_len, said, unseen=True)


def noting_unseen(untrusted: Iterable[Untrusted], items: set[ItemId]) -> Iterator[Untrusted]:
    """The same texts; `items` gains those that a model said knowing what nobody here can read."""
    for source in untrusted:
        if source.unseen:
            items.add(source.item)
        yield source


def pointer_of(source: Untrusted) -> str:
    """The pointer that replaces a repeated run."""
    return pointer_line(
        ElidedSpan(
            item_id=str(source.item),
            kind=source.kind,
            trust_level=source.trust,
            byte_length=source.bytes_len,
            event_id=source.item.sequence,
        )
    )


def argument_texts(arguments: str | None) -> list[tuple[str, str]]:
    """(member, text) of the strings in a call's arguments; broken arguments are told whole."""
    if not arguments:
        return []
    try:
        node = parse(arguments)
    except LexemeError:
        return [("", arguments)]
    found: list[tuple[str, str]] = []
    left = [("", node)]
    while left and len(found) < _MAX_STRINGS:
        name, value = left.pop()
        if value.kind is NodeKind.STRING:
            found.append((name, value.text() or ""))
        left += [*reversed(value.items()), *((name, element) for element in reversed(list(value)))]
    return found


class _Reader:
    """Collects texts in order, so that all of them are held against the evidence in one pass."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.sources: set[int] = set()
        self.masked = 0
        self._items: list[Item] = []
        self._entries: list[tuple[Item, str, int, bool]] = []
        """(item, argument member, place in `said`, said without a call)."""

    def take(self, unit: Unit) -> None:
        """Read one unit's items as far as they may be read."""
        calls = any(item.kind is ItemKind.TOOL_CALL for item in unit.items)
        for item in unit.items:
            self.sources.add(item.id.sequence)
            self._items.append(item)
            if item.kind is ItemKind.TOOL_CALL:
                # What a control tool did stands in the state itself; telling it again would say everything twice.
                if control_rule(item.name or "") is None:
                    self._call(item)
            elif is_readable(item):
                text = "\n".join(part.text for part in item.parts if isinstance(part, TextPart))
                self._add(item, "", text, not calls)

    def elided(self, hidden: Collection[ItemId]) -> Iterator[ElidedSpan]:
        """What is pointed at: all that was not read, or not all of it.

        Args:
            hidden: what a model said knowing what nobody here can read.
        """
        for item in self._items:
            if item.kind is ItemKind.TOOL_CALL:
                if item.id in hidden and control_rule(item.name or "") is None:
                    yield span_of(item)
            elif item.id in hidden or not is_readable(item) or holds_more(item):
                yield span_of(item)

    def _call(self, item: Item) -> None:
        texts = argument_texts(item.arguments) or [("", "")]
        for name, text in texts:
            self._add(item, name, text, False)

    def _add(self, item: Item, member: str, text: str, alone: bool) -> None:
        self._entries.append((item, member, len(self.said), alone))
        self.said.append(Said(item.id.sequence, model_view(text)))

    def replace(self, runs: Sequence[Sequence[Run]], hidden: Collection[ItemId]) -> None:
        """Leave out what may not be read after all, put pointers where untrusted text was repeated, then mask secrets."""
        for item, _, place, _ in self._entries:
            if item.id in hidden:
                self.said[place] = Said(item.id.sequence, "")
        asked = {place for item, _, place, _ in self._entries if item.kind is ItemKind.TOOL_CALL}
        for place, all_found in enumerate(runs):
            said = self.said[place]
            found = [
                run
                for run in (all_found if said.text else ())
                if not (place in asked and is_address(said.text[run.start : run.end]))
            ]
            text = replace_runs(said.text, found, pointer_of) if found else said.text
            clean = redact(text)
            self.masked += clean.masked
            self.said[place] = Said(said.sequence, clean.text)

    def statements(self) -> Iterable[Statement]:
        """What was said, a user's message marked as answered when the model spoke later."""
        spoke = max(
            (
                item.id.sequence
                for item, *_ in self._entries
                if item.kind in {ItemKind.ASSISTANT_MESSAGE, ItemKind.TOOL_CALL}
            ),
            default=0,
        )
        for item, _, place, alone in self._entries:
            if item.kind is ItemKind.TOOL_CALL or not self.said[place].text.strip():
                continue
            asked = item.kind is ItemKind.USER_MESSAGE
            yield Statement(
                item_id=str(item.id),
                trust=item.trust,
                text=self.said[place].text,
                answered=not asked or item.id.sequence < spoke,
                final=alone and not asked,
                instruction=asked and item.trust is not Trust.USER,
            )

    def calls(self) -> Iterable[CallNote]:
        """The calls with their texts."""
        texts: dict[str, list[tuple[str, str]]] = {}
        names: dict[str, str] = {}
        for item, member, place, _ in self._entries:
            if item.kind is ItemKind.TOOL_CALL:
                names[str(item.id)] = item.name or ""
                text = self.said[place].text
                texts.setdefault(str(item.id), []).extend([(member, text)] if text else [])
        for item_id, found in texts.items():
            yield CallNote(item_id=item_id, name=_plain(names[item_id]), texts=tuple(found))


def _plain(name: str) -> str:
    """A tool's name where it is one; a model may call anything, and a sentence is no name."""
    ok = len(name) <= 64 and all(c.isalnum() or c in "._-:/" for c in name)
    return name if ok and name else "(unnamed)"


def is_address(run: str) -> bool:
    """Whether a run is a path or an address and no sentence: no blank, each step of it shorter than a repeated run.

    Calls have to name what a listing showed them; a long name that is itself a message is still one step, and is replaced.
    """
    if any(character.isspace() for character in run):
        return False
    return all(len(step) < LEAST_CHARS for step in run.replace("\\", "/").split("/"))


def as_plain(source: SummarySource) -> dict[str, Any]:
    """The source as plain data, for a summariser behind another port."""
    return source.model_dump(mode="json")
