"""A persona being edited: from form fields to entries and back, and what the draft would be.

Fields draw hidden characters as signs. An entry whose field comes back untouched keeps its own characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from django.http import HttpRequest

from ctxengine.engine.budget.classes import RULE_OF, BudgetClass
from ctxengine.engine.plan.persona import persona_text
from ctxengine.engine.trust.model_view import model_view
from ctxengine.service.plan_specs import PersonaView
from ctxengine.service.wiring import careful_counter
from inspector.access import Viewer
from inspector.figures import number
from inspector.forecast import PersonaRotation, persona_rotations
from inspector.persona_contexts import EntryField, PersonaPreview
from inspector.visible import plain

BLANKS = 3
"""Empty fields behind the last entry, so that entries are added without JavaScript."""
CAP_TOKENS = RULE_OF[BudgetClass.PERSONA].cap_tokens or 0
CAP_ENTRIES = RULE_OF[BudgetClass.PERSONA].cap_items or 0
_MOST_FIELDS = 200
_ROW_CHARS = 90


def draft_of(request: HttpRequest, base: PersonaView) -> tuple[str, ...]:
    """The entries of a form that was made from `base`, in their order; blank ones stay blank."""
    known = {_shown(entry): entry for entry in base.entries}
    given = request.POST.getlist("entry")[:_MOST_FIELDS]
    entries = [known.get(text := _lines(field), text) for field in given]
    while entries and not entries[-1].strip():
        entries.pop()
    return tuple(entries)


def fields_of(
    entries: Sequence[str], saved: Sequence[str], *, blanks: bool
) -> tuple[EntryField, ...]:
    """Fields of the editor, with what differs from the saved document."""
    fields = [
        _field(place + 1, entry, _change(place, entry, saved))
        for place, entry in enumerate(entries)
    ]
    room = min(BLANKS, max(0, CAP_ENTRIES - len(fields))) if blanks else 0
    start = len(fields) + 1
    fields += [EntryField(start + place, "", 0, "", False, 2) for place in range(room)]
    return tuple(fields)


def preview_of(
    viewer: Viewer, principal: str, entries: Sequence[str], base: PersonaView
) -> PersonaPreview:
    """What the draft would be."""
    kept = tuple(model_view(entry) for entry in entries if entry.strip())
    text = persona_text(kept)
    tokens = _tokens(text)
    sessions, more = persona_rotations(actor=viewer.actor, principal=principal, entries=kept)
    return PersonaPreview(
        tokens=tokens,
        cap_tokens=CAP_TOKENS,
        entries=len(kept),
        cap_entries=CAP_ENTRIES,
        difference=tokens - base.tokens,
        text=text,
        over=_over(len(kept), tokens),
        sessions=sessions,
        more_sessions=more,
        recached_tokens=sum(session.recached_tokens for session in sessions),
        price_usd=_price(sessions),
        changed=list(kept) != base.entries,
    )


def _over(entries: int, tokens: int) -> str:
    if entries > CAP_ENTRIES:
        return f"{number(entries)} entries; {number(CAP_ENTRIES)} are allowed. Remove some."
    if tokens > CAP_TOKENS:
        return f"{number(tokens)} tokens; {number(CAP_TOKENS)} are allowed. Shorten it."
    return ""


def _price(sessions: Sequence[PersonaRotation]) -> str | None:
    known = [Decimal(session.price_usd) for session in sessions if session.price_usd is not None]
    return f"{sum(known):f}" if known else None


def _change(place: int, entry: str, saved: Sequence[str]) -> str:
    if not entry.strip():
        return "removed"
    if entry in saved:
        return ""
    return "edited" if place < len(saved) else "new"


def _field(place: int, entry: str, note: str) -> EntryField:
    shown = plain(entry)
    lines = shown.count("\n") + 1 + len(shown) // _ROW_CHARS
    tokens = _tokens(model_view(entry)) if entry.strip() else 0
    return EntryField(place, shown, tokens, note, shown != entry, min(8, max(2, lines)))


def _tokens(text: str) -> int:
    return careful_counter().text(text) if text else 0


def _shown(entry: str) -> str:
    """The text of an entry's field as a browser sends it back untouched."""
    return _lines(plain(_lines(entry)))


def _lines(text: str) -> str:
    """Browsers send every line end as CR LF."""
    return text.replace("\r\n", "\n")
