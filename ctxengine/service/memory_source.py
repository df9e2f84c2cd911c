"""The embedded memory source: recall from this principal's closed turns of other sessions (design 7.16).

It is off unless a session asks for it. A turn is remembered when it closes, as what was asked and what was answered; tool
results are not: whatever they held comes back through the answer alone, as memory.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.contrib.postgres.search import SearchQuery, SearchRank
from django.db import transaction
from django.db.models import F

from ctxengine.engine.compaction.parrot import Said, repeated_runs, replace_runs
from ctxengine.engine.compaction.source import pointer_of, untrusted_of
from ctxengine.engine.derive import text_of_item
from ctxengine.engine.events import EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ItemKind
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.ports import MemorySource, SessionLog, SumColumn
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.step import Memory
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.trust.truncation import truncate_text
from ctxengine.ledger.models import ClosedTurn, RunRow, SessionRow
from ctxengine.ledger.models.persona import SEARCH_CONFIG
from ctxengine.service.snapshots import fence

MAX_LINES = 8
"""Lines one step recalls at most."""
MAX_WORDS = 24
"""Different words of the directive that are looked for."""
MIN_SHARE = 0.3
"""Share of the weight of all words found anywhere that a turn must match to be recalled."""
MIN_WORDS = 2
"""Different words a turn must share with a directive that has more than these."""

_KEPT_CHARS = 4_000
_REPLIES_LOOKED_AT = 8
_ASKED_CHARS, _ANSWERED_CHARS = 300, 600
_CANDIDATES = 200
_WORD = re.compile(r"\w{2,40}")


@dataclass(frozen=True, slots=True)
class EmbeddedMemory:
    """Closed turns of one principal, apart from those of the session that asks."""

    tenant_id: UUID
    principal: str
    session_id: UUID

    def recall(self, directive: str, limit: int) -> Sequence[tuple[str, str]]:
        """Lines worth recalling, best first; none for a directive without words."""
        words = _words(directive)[:MAX_WORDS]
        if not words:
            return ()
        found = self._candidates(words)
        weights = _weights(words, [seen for _, seen in found])
        floor = MIN_SHARE * sum(weights.values())
        needed = min(MIN_WORDS, len(words))
        scored = [
            (sum(weights[word] for word in seen), turn)
            for turn, seen in found
            if len(seen) >= needed
        ]
        best = sorted(
            ((score, turn) for score, turn in scored if score >= floor),
            key=lambda entry: (-entry[0], -entry[1].closed_at.timestamp(), str(entry[1].run_id)),
        )
        return [(_id(turn), _line(turn)) for _, turn in best[:limit]]

    def _candidates(self, words: Sequence[str]) -> list[tuple[ClosedTurn, frozenset[str]]]:
        query = SearchQuery(words[0], config=SEARCH_CONFIG)
        for word in words[1:]:
            query |= SearchQuery(word, config=SEARCH_CONFIG)
        rows = (
            ClosedTurn.objects.filter(
                tenant_id=self.tenant_id, principal=self.principal, words=query
            )
            .exclude(session_id=self.session_id)
            .annotate(rank=SearchRank(F("words"), query))
            .order_by("-rank", "-closed_at", "run_id")
        )
        wanted = frozenset(words)
        return [
            (row, wanted.intersection(_words(f"{row.asked} {row.answered}")))
            for row in rows[:_CANDIDATES]
        ]


def with_embedded(session: SessionRow, log: SessionLog, memory: Memory) -> Memory:
    """A step's memory with the embedded source's lines behind those that the runtime sent."""
    if session.settings.get("memory") != "embedded" or not session.principal:
        return memory
    source: MemorySource = EmbeddedMemory(session.tenant_id, session.principal, session.id)
    known = {text for _, text in memory.recall}
    lines = [line for line in source.recall(directive_of(log), MAX_LINES) if line[1] not in known]
    return replace(memory, recall=(*memory.recall, *lines))


def directive_of(log: SessionLog) -> str:
    """What the user asks now: the newest message of theirs."""
    asked = [log.newest(type) for type in (EventType.USER_MESSAGE, EventType.INPUT_RECEIVED)]
    spoken = (e for e in asked if e is not None and e.trust.rank <= Trust.MODEL.rank)
    newest = max(spoken, key=lambda e: e.sequence, default=None)
    return _said(log, newest, ItemKind.USER_MESSAGE)


_EVIDENCE_TOKENS = 400_000
"""How far back an answer is held against the session's evidence (tokens): more than any window it was written in."""


def remember_turn(session: SessionRow, run: RunRow, log: SessionLog, *, at: datetime) -> None:
    """Keep a closed turn for recall; nothing is kept of sessions without a principal, nor of turns without an answer."""
    if not session.principal or session.import_sha256 or run.seed_event_sequence is None:
        return
    newest = log.latest({EventType.RESPONSE_COMPLETED}, limit=_REPLIES_LOOKED_AT)
    reply = next((event for event in newest if event.run == str(run.id)), None)
    if reply is None:
        return
    answered = _said(log, reply, ItemKind.ASSISTANT_MESSAGE)
    (seed,) = log.events(after=EventSeq(run.seed_event_sequence - 1), limit=1)
    asked = _said(log, seed, ItemKind.USER_MESSAGE)
    if not answered or not asked:
        return
    answered = _own_words(log, reply, answered)
    kept = {
        "session_id": session.id,
        "principal": session.principal,
        "sequence": seed.sequence,
        "asked": truncate_text(model_view(redact(asked).text), _KEPT_CHARS),
        "answered": truncate_text(model_view(redact(answered).text), _KEPT_CHARS),
        "closed_at": at,
    }
    with transaction.atomic():
        # An erasure either sees this row or has blanked what it was made from.
        fence(session.tenant_id, session.principal)
        if _all_there(log, (seed, reply)):
            ClosedTurn.objects.get_or_create(
                tenant_id=session.tenant_id, run_id=run.id, defaults=kept
            )


def _all_there(log: SessionLog, events: Sequence[EventRecord]) -> bool:
    texts = log.texts([event.body.id for event in events if event.body is not None])
    return None not in texts.values()


def _own_words(log: SessionLog, reply: EventRecord, answered: str) -> str:
    """The answer with every stretch that repeats untrusted evidence replaced by its pointer (design 7.2)."""
    head = log.head()
    since = log.first(SumColumn.TOKENS, max(0, head.tokens - _EVIDENCE_TOKENS), reply.sequence)
    said = Said(reply.sequence, answered)
    until = EventSeq(reply.sequence + 1)
    (runs,) = repeated_runs([said], untrusted_of(log.units(since.sequence, until)))
    return replace_runs(answered, runs, pointer_of)


def _said(log: SessionLog, event: EventRecord | None, kind: ItemKind) -> str:
    unit = log.unit_of_item(event.sequence) if event is not None else None
    if unit is None or event is None:
        return ""
    items = [i for i in unit.items if i.kind is kind and i.id.sequence == event.sequence]
    return "\n".join(text_of_item(item) for item in items).strip()


def _words(text: str) -> list[str]:
    """Different words in the order of their first occurrence."""
    return list(dict.fromkeys(_WORD.findall(text.casefold())))


def _weights(words: Sequence[str], seen: Sequence[frozenset[str]]) -> dict[str, float]:
    """Rare words say more: what every remembered turn holds weighs next to nothing."""
    counts = Counter(word for found in seen for word in found)
    total = len(seen) + 1
    return {word: math.log(1 + total / counts[word]) for word in words if counts[word]}


def _id(turn: ClosedTurn) -> str:
    return f"{turn.session_id}:{turn.sequence}"


def _line(turn: ClosedTurn) -> str:
    asked = _short(turn.asked, _ASKED_CHARS)
    answered = _short(turn.answered, _ANSWERED_CHARS)
    return f"{turn.closed_at:%Y-%m-%d}, an earlier session. Asked: {asked} Answered: {answered}"


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{truncate_text(line, limit)}..."
