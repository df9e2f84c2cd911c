"""Sorting model calls into conversations by what they repeat.

A call whose turns begin with everything an earlier one said continues that conversation: only what is new becomes entries,
the repetition is reported. A call that rewrites history opens a conversation of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ctxengine.engine.importers.dialect import Answer, Dialect, Facts, Request, Token, Turn
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.transcript import ForeignSession, RepairAction

WHOLE_FILE = "the file"
"""Place of a call that is all there is in the file."""

_LOOK_BACK = 16
"""How many conversations back a call may continue; keeps files of thousands of conversations linear."""


@dataclass(slots=True)
class Conversation:
    """A conversation as far as it is known."""

    draft: SessionDraft
    dialect: Dialect
    known: list[Token] = field(default_factory=list)
    unread: list[Turn] = field(default_factory=list)
    """Turns said since `known` was last brought up to date (a file of one call never needs it)."""
    response_ids: set[str] = field(default_factory=set)

    def tokens(self) -> list[Token]:
        """Everything said so far."""
        if self.unread:
            said = map(self.dialect.tokens, self.unread)
            self.known = _merged([self.known, *said])
            self.unread = []
        return self.known

    def go_on(self, turns: list[Turn], first: int, where: str, *, at: str | None = None) -> None:
        """Add the turns of a call that is known to continue here; those before `first` are known."""
        if first and turns:
            note_repeated(self, turns[:first], where)
        self.dialect.add(
            self.draft,
            turns[first:],
            lambda n: place_of(where, f"message {first + n + 1}"),
            Facts(at=at),
        )
        self.unread.extend(turns[first:])


class Conversations:
    """All conversations of a file, in the order in which they began."""

    def __init__(self) -> None:
        self._all: list[Conversation] = []

    def ask(
        self, dialect: Dialect, asked: Request, where: str, *, at: str | None = None
    ) -> Conversation:
        """Find (or open) the conversation of a request and add what is new in it."""
        conversation, matched = self._find(dialect, asked)
        draft = conversation.draft
        draft.model = draft.model or asked.model
        if asked.instructions and asked.instructions != draft.instructions:
            draft.note(
                RepairAction.WARNED,
                "instructions_changed",
                where,
                "The request carries other instructions than the first one; the first ones are kept.",
            )
        for node in asked.unread:
            detail = "Something in the place of the instructions that is no text."
            draft.leave("unreadable_instructions", where, detail, raw=node.raw)
        for tool in asked.tools:
            draft.declare(tool)
        conversation.go_on(asked.turns, matched, where, at=at)
        return conversation

    def sessions(self) -> list[ForeignSession]:
        """Finish every conversation; one of which nothing was ever readable still reports why."""
        return [conversation.draft.finish() for conversation in self._all]

    def _find(self, dialect: Dialect, asked: Request) -> tuple[Conversation, int]:
        """The conversation a request belongs to, and how many of its turns are known already."""
        candidates = [c for c in self._all[-_LOOK_BACK:] if c.dialect is dialect]
        for candidate in candidates:
            if asked.follows in candidate.response_ids:
                return candidate, 0
        found, matched = None, 0
        if candidates:
            per_turn = [dialect.tokens(turn) for turn in asked.turns]
            for candidate in candidates:
                count = _repeats(candidate.tokens(), per_turn)
                if count and count >= matched:
                    found, matched = candidate, count
        return found or self._open(dialect, asked), matched

    def _open(self, dialect: Dialect, asked: Request) -> Conversation:
        draft = SessionDraft(f"conversation-{len(self._all) + 1}", dialect.provider)
        draft.instructions = asked.instructions
        conversation = Conversation(draft, dialect)
        self._all.append(conversation)
        return conversation


def tell(conversation: Conversation, answer: Answer, where: str, *, at: str | None = None) -> None:
    """Add an answer to its conversation."""
    draft = conversation.draft
    facts = answer.facts._replace(at=answer.facts.at or at)
    conversation.dialect.add(draft, answer.turns, lambda _: place_of(where, "answer"), facts)
    conversation.unread.extend(answer.turns)
    if answer.response_id is not None:
        conversation.response_ids.add(answer.response_id)
    if answer.dropped:
        draft.note(
            RepairAction.WARNED,
            "other_choices",
            where,
            f"Further choices of the response that are not part of the conversation: {answer.dropped}.",
        )


def compact(conversation: Conversation, answer: Answer, where: str) -> None:
    """Add an explicit compaction, which gives a new window: the block is new, the messages beside it are old."""
    blocks = [turn for turn in answer.turns if turn.role == "summary"]
    note_repeated(conversation, [t for t in answer.turns if t.role != "summary"], where)
    conversation.known, conversation.unread = [], []
    tell(conversation, answer._replace(turns=blocks), where)


def note_repeated(conversation: Conversation, turns: list[Turn], where: str) -> None:
    """Count repeated turns by reading them into a draft of their own that is thrown away."""
    shadow = SessionDraft("", conversation.dialect.provider)
    conversation.dialect.add(shadow, turns, lambda _: where)
    conversation.draft.found(shadow.items_in)
    conversation.draft.tally(
        "repeated_history",
        where,
        "History that earlier calls of the conversation already gave.",
        items=shadow.items_in,
    )


def place_of(where: str, what: str) -> str:
    """Words for a place inside a call."""
    return f"{where} {what}" if where != WHOLE_FILE else what


def _merged(per_turn: Iterable[list[Token]]) -> list[Token]:
    """One flat list; neighbouring texts of the model become one, since replays cut them differently."""
    merged: list[Token] = []
    for tokens in per_turn:
        for token in tokens:
            if merged and _joins(merged[-1], token):
                merged[-1] = ("assistant", "text", merged[-1][2] + token[2])
            else:
                merged.append(token)
    return merged


def _joins(before: Token, after: Token) -> bool:
    return before[:2] == after[:2] == ("assistant", "text")


def _repeats(known: list[Token], per_turn: list[list[Token]]) -> int:
    """How many turns of a request repeat all that is known; 0 when it does not begin with it."""
    if not known:
        return 0
    merged: list[Token] = []
    for count, tokens in enumerate(per_turn, 1):
        for token in tokens:
            if merged and _joins(merged[-1], token):
                merged[-1] = ("assistant", "text", merged[-1][2] + token[2])
            else:
                merged.append(token)
        if len(merged) > len(known):
            return 0
        if not tokens or len(merged) < len(known) or merged[-1] != known[-1]:
            continue
        if merged == known and not _continues(merged, per_turn[count:]):
            return count
    return 0


def _continues(merged: list[Token], rest: list[list[Token]]) -> bool:
    following = next((tokens[0] for tokens in rest if tokens), None)
    return following is not None and _joins(merged[-1], following)
