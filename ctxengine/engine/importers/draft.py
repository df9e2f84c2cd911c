"""A session while it is being read: what was found, what became an entry, what was set aside and why.

`found` is told what the source holds before anything is done with it; `add` and `set_aside` say where it went. The two
sides are never computed from each other, so that a loss shows in the counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ctxengine.engine.content.decode import decode, strip_opaque
from ctxengine.engine.importers.repair import Drafted, repair, role_of
from ctxengine.engine.importers.shapes import Shape
from ctxengine.engine.importers.shelf import Shelf, kept
from ctxengine.engine.importers.texts import first_line, has_lone_surrogate
from ctxengine.engine.importers.transcript import (
    Entry,
    EntryType,
    ForeignSession,
    ForeignTool,
    Repair,
    RepairAction,
)

_UNFINISHED = ("pause_turn", "tool_use", "tool_calls", "toolUse")
"""Stop reasons that say the run goes on."""


@dataclass(slots=True)
class _Tally:
    action: RepairAction
    detail: str
    first: str
    last: str
    times: int = 0
    items: int = 0


class SessionDraft:
    """Collects one session. Readers call `found` for what they see and then account for it."""

    def __init__(
        self, key: str, provider: str, title: str = "", shelf: Shelf | None = None
    ) -> None:
        self.key = key
        self.provider = provider
        self.title = title
        self.model: str | None = None
        self.instructions = ""
        self.parent: tuple[str, int] | None = None
        self.started_at: str | None = None
        """When the file says that it began, for files whose messages bear no time."""
        self.tools: dict[str, ForeignTool] = {}
        self._shelf = shelf
        self._drafts: list[Drafted] = []
        self._repairs: list[Repair] = []
        self._tallies: dict[str, _Tally] = {}
        self._items_in = 0
        self._places: dict[str, int] = {}
        self._call_ids: dict[tuple[str, str], str | None] = {}
        """Ids by tool and arguments, of the entries looked up so far."""
        self._looked_up = 0

    @property
    def size(self) -> int:
        """Entries so far."""
        return len(self._drafts)

    @property
    def items_in(self) -> int:
        """Items found so far."""
        return self._items_in

    def found(self, items: int) -> None:
        """Count what the source holds; to be called once for each thing that is read."""
        self._items_in += items

    def add(self, entry: Entry, shape: Shape, where: str) -> None:
        """Take an entry in, its reasoning taken out; an empty message is set aside."""
        self._warn(entry, shape, where)
        if not shape.items and not shape.reasoning:
            self.set_aside(
                "empty_message",
                where,
                "A message without any content.",
                raw=entry.extra or entry.body,
            )
            return
        if shape.reasoning:
            stripped = strip_opaque(entry.format, entry.body, role=role_of(entry))
            entry = replace(entry, text=stripped.body, opaque=stripped.opaque, value=None)
        if entry.model is not None and self.model is None:
            self.model = entry.model
        if self._shelf is not None:
            entry = replace(entry, text=kept(entry.body, self._shelf), value=None)
        self._drafts.append(Drafted(entry, shape, where))

    def cut(self, start: int, other: SessionDraft) -> str | None:
        """Move the entries from this one on to another session; gives the place of the one before them."""
        moved = self._drafts[start:]
        del self._drafts[start:]
        self._call_ids, self._looked_up = {}, 0
        items = sum(draft.shape.total for draft in moved)
        self._items_in -= items
        other._items_in += items
        other._drafts += moved
        return self._drafts[-1].where if self._drafts else None

    def set_aside(
        self, code: str, where: str, detail: str, *, items: int = 1, raw: str = ""
    ) -> None:
        """Account for something found that is no entry."""
        self._repairs.append(
            Repair(RepairAction.SET_ASIDE, code, where, detail, items=items, raw=raw)
        )

    def leave(self, code: str, where: str, detail: str, *, raw: str = "") -> None:
        """Find one thing and set it aside at once."""
        self.found(1)
        self.set_aside(code, where, detail, raw=raw)

    def note(self, action: RepairAction, code: str, where: str, detail: str) -> None:
        """Report something that changes no count."""
        self._repairs.append(Repair(action, code, where, detail))

    def tally(
        self,
        code: str,
        where: str,
        detail: str,
        *,
        items: int = 0,
        action: RepairAction = RepairAction.SET_ASIDE,
    ) -> None:
        """Report something that happens often: one line per code, with how often and from where to where."""
        tally = self._tallies.get(code)
        if tally is None:
            tally = self._tallies[code] = _Tally(action, detail, where, where)
        tally.last = where
        tally.times += 1
        tally.items += items

    def leave_many(self, code: str, where: str, detail: str) -> None:
        """Find one record of a frequent kind that is no content and set it aside."""
        self.found(1)
        self.tally(code, where, detail, items=1)

    def declare(self, tool: ForeignTool) -> None:
        """Keep a tool definition; the first one of a name stands."""
        self.tools.setdefault(tool.name, tool)

    def index_of(self, where: str) -> int | None:
        """After `finish`: index of the last entry that came from this place."""
        return self._places.get(where)

    def call_id_of(self, name: str, arguments: str) -> str | None:
        """Id of the latest call of this tool with these arguments (blanks left out); None when there is none."""
        for draft in self._drafts[self._looked_up :]:
            self._look_up(draft)
        self._looked_up = len(self._drafts)
        return self._call_ids.get((name, arguments))

    def _look_up(self, draft: Drafted) -> None:
        """Keep the ids of an entry's calls; of calls that are alike the entry's first one counts."""
        if not draft.shape.calls:
            return
        items = decode(draft.entry.format, draft.entry.body, role="assistant").items
        for call in reversed(draft.shape.calls):
            given = items[call.ordinal].arguments or ""
            self._call_ids[call.name, "".join(given.split())] = call.call_id

    def finish(self) -> ForeignSession:
        """Repair and close the session."""
        repaired = repair(self._drafts)
        self._repairs.extend(repaired.repairs)
        drafts = self._settle_reasoning(repaired.drafts)
        self._synthesise_tools(drafts)
        entries = [draft.entry for draft in drafts]
        self._places = {draft.where: index for index, draft in enumerate(drafts)}
        return ForeignSession(
            key=self.key,
            title=self.title or _title(entries),
            provider=self.provider,
            model=self.model or "unknown",
            instructions=self.instructions,
            tools=tuple(self.tools.values()),
            entries=entries,
            repairs=[*self._repairs, *map(_tally_line, self._tallies.items())],
            items_in=self._items_in,
            parent=self.parent,
            started_at=next((entry.at for entry in entries if entry.at), self.started_at),
        )

    def _warn(self, entry: Entry, shape: Shape, where: str) -> None:
        if shape.empty:
            if entry.type is EntryType.RESULT:
                code, detail = "empty_result", "Results without output; kept as they are."
            else:
                code, detail = "empty_text", "Texts without a character; left out of requests."
            self.tally(code, where, detail, action=RepairAction.WARNED)
        for call in shape.calls:
            if call.broken:
                self.note(
                    RepairAction.WARNED,
                    "broken_arguments",
                    where,
                    f"The arguments of call {call.call_id!r} to {call.name!r} are not a JSON object; "
                    "they are kept as written.",
                )
        if has_lone_surrogate(entry.body):
            self.tally(
                "lone_surrogate",
                where,
                "Half characters (lone surrogates); kept as written, replaced in requests.",
                action=RepairAction.WARNED,
            )

    def _settle_reasoning(self, drafts: list[Drafted]) -> list[Drafted]:
        """Keep reasoning in the run that is still open, drop it elsewhere; both are reported."""
        start = _open_run_start(drafts)
        settled: list[Drafted] = []
        for index, draft in enumerate(drafts):
            if not draft.entry.opaque:
                settled.append(draft)
                continue
            blocks = len(draft.entry.opaque)
            if index >= start:
                detail = "Reasoning of the run that is still open; kept for its next request only."
                self.tally("reasoning_kept", draft.where, detail, items=blocks)
                settled.append(draft)
                continue
            detail = "Reasoning of closed runs; it never enters the ledger."
            self.tally("reasoning", draft.where, detail, items=blocks)
            settled.append(replace(draft, entry=replace(draft.entry, opaque=())))
        return settled

    def _synthesise_tools(self, drafts: list[Drafted]) -> None:
        for draft in drafts:
            for call in draft.shape.calls:
                if call.name not in self.tools:
                    self.tools[call.name] = ForeignTool(call.name, synthesised=True)
                    self.note(
                        RepairAction.ADDED,
                        "synthesised_tool",
                        draft.where,
                        f"Tool {call.name!r} is called but not declared; it gets an open schema.",
                    )


def _open_run_start(drafts: list[Drafted]) -> int:
    """Index from which the last run is open; the number of entries when it is closed."""
    start = 0
    for index in range(len(drafts) - 1, -1, -1):
        if drafts[index].entry.type is EntryType.USER:
            start = index
            break
    for draft in reversed(drafts[start:]):
        if draft.entry.type is EntryType.ASSISTANT:
            goes_on = bool(draft.shape.calls) or draft.entry.stop_reason in _UNFINISHED
            return start if goes_on else len(drafts)
    return len(drafts)


def _title(entries: list[Entry]) -> str:
    for entry in entries:
        if entry.type is EntryType.USER:
            return first_line(entry)
    return "Untitled session"


def _tally_line(named: tuple[str, _Tally]) -> Repair:
    code, tally = named
    where = tally.first if tally.times == 1 else f"{tally.first} to {tally.last}"
    detail = tally.detail if tally.times == 1 else f"{tally.detail} ({tally.times} places)"
    return Repair(tally.action, code, where, detail, items=tally.items)
