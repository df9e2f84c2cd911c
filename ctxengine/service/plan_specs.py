"""What the doors hand to the use cases that change a session's plan between runs, and what they get back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import Field

from ctxengine.service.spec_base import Spec
from ctxengine.service.specs import AgentRef, ModelRef, PolicySpec, SnapshotSpec, ToolSpec


class Configure(Spec):
    """`PATCH sessions/{id}`: what applies from the next run on; a field that is left out stays as it is."""

    model: ModelRef | None = None
    agent: AgentRef | None = None
    tools: tuple[ToolSpec, ...] | None = None
    persona: tuple[str, ...] | None = None
    snapshot: SnapshotSpec | None = None
    policy: PolicySpec | None = None
    environment: dict[str, str] | None = None


class SetAuthority(Spec):
    """`PUT sessions/{id}/authority`: the scopes granted from now on."""

    scopes: tuple[str, ...]
    resolves_run: UUID | None = None
    """An open run that waits for this access and has done no model work: its pins are made anew, once."""


class EditPersona(Spec):
    """`PUT personas/{principal}`: the whole document, over the revision that was read."""

    revision: int = Field(ge=0)
    """The revision that the editor saw; 0 where there was none."""
    entries: tuple[str, ...]
    note: str = Field(default="", max_length=2_000)


@dataclass(frozen=True, slots=True)
class PersonaView:
    """A persona document as REST shows it."""

    principal: str
    revision: int
    """0: nothing was saved yet."""
    entries: list[str]
    tokens: int
    note: str
    saved_by: str
    saved_at: datetime | None


@dataclass(frozen=True, slots=True)
class AuthorityView:
    """Answer of set_authority."""

    granted: list[str]
    reduced: list[str]
    scopes: list[str]
    epoch: int


@dataclass(frozen=True, slots=True)
class ToolAct:
    """Answer of revoking or restoring a tool."""

    name: str
    revoked: bool
    event_sequence: int


@dataclass(frozen=True, slots=True)
class Configured:
    """Answer of configure_session."""

    fields: list[str]
    """What will change at the next run's start."""
    event_sequence: int


@dataclass(frozen=True, slots=True)
class PersonErased:
    """Answer of erase_person."""

    sessions: int
    bodies: int
    runs_ended: int
