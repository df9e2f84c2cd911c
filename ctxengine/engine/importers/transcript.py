"""The neutral shape of a foreign transcript and of its repair report.

Counting rule: every item found in the source file is either an item of an entry or an entry of the report, never both
and never neither, so that items in = items in the ledger + items listed in the report.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ctxengine.engine.importers.shelf import Shelved, taken
from ctxengine.engine.items import ContentFormat, Opaque
from ctxengine.engine.trust.levels import Trust


class EntryType(StrEnum):
    """What one entry becomes in the ledger."""

    USER = "user"
    """A user's message: opens a run."""
    INPUT = "input"
    """User-role content that is not a user's directive (a caveat, an environment note): stays in the open run."""
    ASSISTANT = "assistant"
    """One model answer: the point where a model was called, hence one request."""
    RESULT = "result"
    """One tool result."""
    SUMMARY = "summary"
    """A foreign summary or compaction block: EXTERNAL_UNTRUSTED item (design 7.17)."""


@dataclass(frozen=True, slots=True)
class ForeignUsage:
    """Usage as reported, in disjoint buckets (tokens). None means not reported."""

    fresh: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message as it stood in the file."""

    type: EntryType
    format: ContentFormat
    text: str | Shelved
    """Raw text, opaque reasoning already taken out, or where it lies; see `body`."""
    trust: Trust
    at: str | None = None
    """The file's own time, ISO 8601 with offset; None where the file has none."""
    call_id: str | None = None
    """For a result: the original call id it answers."""
    call_ref: tuple[int, int] | None = None
    """For a result: (index of the assistant entry, ordinal of the call in it) it answers; set by repair."""
    name: str | None = None
    is_error: bool = False
    synthetic: bool = False
    """Made by repair (an interrupted call's closing result), not found in the file."""
    model: str | None = None
    usage: ForeignUsage | None = None
    stop_reason: str | None = None
    extra: str = ""
    """Raw JSON text of the source record's fields that nothing here models; kept in the event's payload."""
    opaque: tuple[Opaque, ...] = ()
    value: Any = field(default=None, compare=False, repr=False)
    """What the body decodes to, where its reader knows; it only spares whoever takes the entry in from reading it again."""

    @property
    def body(self) -> str:
        """The raw text."""
        return taken(self.text)

    def answering(self, call_ref: tuple[int, int], name: str) -> Entry:
        """The same, as the result of this call."""
        return Entry(
            self.type, self.format, self.text, self.trust, self.at, self.call_id, call_ref, name, self.is_error,
            self.synthetic, self.model, self.usage, self.stop_reason, self.extra, self.opaque, self.value,
        )  # fmt: skip


class RepairAction(StrEnum):
    """What was done with something that could not go in as it was."""

    ADDED = "added"
    REMAPPED = "remapped"
    JOINED = "joined"
    MOVED = "moved"
    SET_ASIDE = "set_aside"
    WARNED = "warned"


@dataclass(frozen=True, slots=True)
class Repair:
    """One line of the repair report."""

    action: RepairAction
    code: str
    """Stable word: `orphan_result`, `interrupted_call`, `duplicate_call_id`, `empty_block`, `reasoning`, ..."""
    where: str
    """Place in the file, for people: `line 12`, `episode 4 message 7`."""
    detail: str
    items: int = 0
    """Items of the file this line accounts for (only `set_aside` lines carry a number above 0)."""
    raw: str = field(default="", repr=False)
    """Source text of a single thing that was set aside, so that nothing is lost; never reasoning."""


@dataclass(slots=True)
class ForeignSession:
    """One conversation found in a file."""

    key: str
    """Stable within the file; with the file's digest it makes the import idempotent."""
    title: str
    provider: str = "anthropic"
    model: str = "unknown"
    instructions: str = ""
    tools: tuple[ForeignTool, ...] = ()
    entries: list[Entry] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    items_in: int = 0
    """Items found in the source for this session (entries' items + reported ones, synthetic ones excluded)."""
    parent: tuple[str, int] | None = None
    """(key of the parent session, index of its entry this one hangs on) for sidechains and sub-agents."""
    started_at: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignTool:
    """A tool as the file declares it, or as a call implies it."""

    name: str
    description: str = ""
    input_schema: str = '{"type":"object"}'
    """JSON text as received."""
    synthesised: bool = False
    """Called but never declared: given an open schema (design 7.17)."""


@dataclass(slots=True)
class Transcript:
    """Everything one file gives."""

    format: str
    sessions: list[ForeignSession]
    repairs: list[Repair] = field(default_factory=list)
    """Report lines that belong to no session."""
    items_in: int = 0
    """Items of the file that belong to no session; each stands in `repairs`."""
