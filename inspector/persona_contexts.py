"""What the templates of personas, agents and policies receive."""

from __future__ import annotations

from dataclasses import dataclass

from ctxengine.ledger.queries.agents import AgentDetail, AgentLine, PolicyLine
from ctxengine.ledger.queries.paging import Page
from ctxengine.ledger.queries.personas import PersonaLine, RevisionLine
from ctxengine.service.plan_specs import PersonaView
from inspector.contexts import Shell
from inspector.forecast import PersonaRotation
from inspector.textdiff import DiffLine


@dataclass(frozen=True, slots=True)
class PersonasPage:
    """P10: every principal with a document or an open session."""

    shell: Shell
    page: Page[PersonaLine]


@dataclass(frozen=True, slots=True)
class EntryField:
    """One entry in the editor."""

    number: int
    text: str
    """What the field shows: hidden characters are drawn as signs."""
    tokens: int
    note: str
    """`new`, `edited`, `removed`, or empty."""
    has_signs: bool
    rows: int
    """Height of the field in lines."""


@dataclass(frozen=True, slots=True)
class PersonaPreview:
    """What a draft would be: counts against caps, the rendered row, the sessions that will rotate."""

    tokens: int
    cap_tokens: int
    entries: int
    cap_entries: int
    difference: int
    """Tokens against the revision it is based on."""
    text: str
    """Row 4 as it will be rendered; empty for a persona that says nothing."""
    over: str
    """Which cap it is over, in words; empty when it fits."""
    sessions: tuple[PersonaRotation, ...]
    more_sessions: int
    recached_tokens: int
    price_usd: str | None
    changed: bool

    @property
    def token_bar(self) -> int:
        """Width of the used part of the bar, of 160."""
        return min(160, round(160 * self.tokens / max(1, self.cap_tokens)))

    @property
    def entry_bar(self) -> int:
        """The same for entries."""
        return min(160, round(160 * self.entries / max(1, self.cap_entries)))


@dataclass(frozen=True, slots=True)
class PersonaPage:
    """P10: one document: editor, preview, revisions, the difference of two."""

    shell: Shell
    principal: str
    document: PersonaView
    """The newest revision."""
    fields: tuple[EntryField, ...]
    preview: PersonaPreview
    revisions: tuple[RevisionLine, ...]
    compared: tuple[int, int] | None
    """Revisions whose difference is shown."""
    lines: tuple[DiffLine, ...]
    note: str
    problem: str
    stale: bool
    """Whether somebody else saved first: their edit is shown."""
    saved: int | None
    may_act: bool


@dataclass(frozen=True, slots=True)
class PersonaFragment:
    """The preview alone, for the editor."""

    preview: PersonaPreview
    slug: str


@dataclass(frozen=True, slots=True)
class PolicyView:
    """A policy in words, with what differs from the default."""

    line: PolicyLine
    differs: tuple[tuple[str, str, str], ...]
    """Figure, default, here."""
    figures: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AgentsPage:
    """P14: agent versions and the policies in force."""

    shell: Shell
    agents: tuple[AgentLine, ...]
    detail: AgentDetail | None
    policies: tuple[PolicyView, ...]
