"""What an export could not carry: said once per kind, with how much and where (issue 3: nothing is lost silently)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ctxengine.engine.ids import EventSeq

SHOWN = 20
"""Sequences that a line names; the count tells how many there are in all."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One kind of thing that the target has no place for."""

    code: str
    """Stable word: `error_flag`, `foreign_part`, `secret`, ..."""
    detail: str
    items: int
    """How many of them there are."""
    sequences: tuple[EventSeq, ...]
    """Events they stand in, the first ones; empty for what belongs to the session as a whole."""

    def as_json(self) -> dict[str, Any]:
        """Plain data for REST and the command line."""
        return {
            "code": self.code,
            "detail": self.detail,
            "items": self.items,
            "sequences": list(self.sequences),
        }


_DETAILS = {
    "erased": "Content that was erased; a fixed text stands in its place.",
    "error_flag": "Results that are marked as failed; the target has no such mark, their texts are kept.",
    "foreign_part": "Parts that only another provider's API understands.",
    "media": "Images or files at places where the target holds text only, or in a form it does not know.",
    "note_as_user": "User-role content that no user said; the target tells it from a user's message by nothing.",
    "order": "Texts that stood between or behind calls; in the target all text of an answer precedes its calls.",
    "phase": "Marks of an answer's phase.",
    "secret": "Texts in which secrets were masked.",
    "separate_messages": "Answers of several messages; the target holds one message for each answer.",
    "skills": "Skills of the catalog.",
    "snapshot": "Lines of the memory snapshot.",
    "summary_as_user": "Summaries; the target has no kind of its own for them, they stand as user messages.",
    "repaired_result": "Results that the import added for calls without one; an import adds them again.",
    "time_order": "Times that run backwards; spans keep the order of the log and take the time before them.",
}
"""The one table of what can be left out, and what is said about it."""


class Losses:
    """Collects what is left out while a session is written."""

    def __init__(self) -> None:
        self._items: dict[str, int] = {}
        self._places: dict[str, list[EventSeq]] = {}

    def note(self, code: str, sequence: EventSeq | None = None, *, items: int = 1) -> None:
        """Count something; `code` is one of the table's."""
        self._items[code] = self._items.get(code, 0) + items
        places = self._places.setdefault(code, [])
        if sequence is not None and len(places) < SHOWN and sequence not in places[-1:]:
            places.append(sequence)

    def lines(self) -> tuple[LeftOut, ...]:
        """The report, by code."""
        return tuple(
            LeftOut(code, _DETAILS[code], items, tuple(self._places[code]))
            for code, items in sorted(self._items.items())
        )
