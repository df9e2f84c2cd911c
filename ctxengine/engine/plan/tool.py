"""A tool as a plan pins it (design 5, the tool's fields; frozen-prefix spec, The budget allocator)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.presentations.schemas import CardSchema
from ctxengine.engine.trust.levels import Trust

READ_EFFECTS = frozenset({"none", "workspace_read", "network_read"})
"""Side effects that change nothing: such discovered tools keep their definitions longest."""

ToolGroup = Literal["defined", "deferred", "skipped", "hidden"]


class PinnedTool(BaseModel):
    """A tool as pinned: everything about it, of which the model sees name, description and schema."""

    model_config = ConfigDict(frozen=True)

    name: str
    wire_name: str
    description: str
    input_schema: str
    """Model-visible JSON text (see `plan.schema`)."""
    output_schema: str | None = None
    group: ToolGroup = "defined"
    reason: str = ""
    """Why it stands in its group."""
    tokens: int = 0
    required_scopes: tuple[str, ...] = ()
    side_effect: str = "world"
    result_trust: Trust = Trust.EXTERNAL_UNTRUSTED
    server: str = ""
    """Where it was discovered; empty for a tool that the agent's configuration names."""
    serves: tuple[str, ...] = ()
    observes: tuple[str, ...] = ()
    required: bool = False
    """A plan that cannot define it fails."""
    always_loaded: bool = False
    presentation: str | None = None
    """Semantic type of the card that its calls show; such a call is answered by the platform."""
    card: CardSchema | None = None
    """What its cards are known by, where the caller says so."""
    synthesised: bool = False
    control: bool = False
    """Answered by the platform itself."""
    deferred: bool = False
    """The configuration wants it in the index rather than among the definitions."""
    model_visible: bool = True
    removed: bool = False
    """Taken out of the prompt for security: no later epoch brings it back."""
    place: int = 0
    """Where the caller named it first. It decides who gets a slot, never the order of the bytes."""

    @property
    def discovered(self) -> bool:
        """Whether a server brought it rather than the agent's configuration."""
        return bool(self.server)

    @property
    def callable(self) -> bool:
        """Whether the model may reach it: by its definition, or by its index entry through `tool.call`."""
        return self.group in {"defined", "deferred"}
