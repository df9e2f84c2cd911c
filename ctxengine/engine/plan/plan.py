"""A plan: the pinned region A of a session, how it renders and what its hashes cover (design 2, 6)."""

from __future__ import annotations

import hashlib
import json
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.control.table import ControlTool
from ctxengine.engine.plan.deferred_index import index_text
from ctxengine.engine.plan.hashes import neutral_sha256
from ctxengine.engine.plan.persona import persona_text
from ctxengine.engine.plan.skills import PinnedSkill, catalog_text
from ctxengine.engine.plan.tool import PinnedTool
from ctxengine.engine.trust.envelope import nonce, render_envelope
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.wire.base import WirePrefix, WireRenderer, WireTool

BUILDER_VERSION = "builder@3"

SAME_BYTES = frozenset({"builder@1", "builder@2", BUILDER_VERSION})
"""Builders whose requests this one rebuilds to the same bytes, but for attachments and blocks that it writes otherwise: where
they stand, a request is one of a retired builder (design 7.7)."""


class ClassTokens(BaseModel):
    """What one prefix class takes."""

    model_config = ConfigDict(frozen=True)

    tokens: int
    items: int
    cap_tokens: int | None
    cap_items: int | None
    source: Literal["counted", "estimated", "measured"]


class Plan(BaseModel):
    """Region A, resolved once and pinned. Equal plans render equal bytes in any process."""

    model_config = ConfigDict(frozen=True)

    epoch: int
    engine: str
    provider: str
    model: str
    window: int
    max_output: int
    policy: BudgetPolicy
    prefix_ttl: Literal["5m", "1h"] = "5m"
    """Life asked for the prefix's cache entries; no part of the plan's identity, it never rotates an epoch."""
    fresh_rows: Literal["moving", "appended"] = "moving"
    """Where rows 11 to 14 stand inside a run: at its end, wherever that is, or each block where it was first sent, with later
    steps adding only what changed. The latter on models that bind their reasoning to every byte before it (design 7.12)."""
    policy_text: str
    framing: str
    framing_version: str
    agent_name: str = ""
    agent_version: str = ""
    instructions: str
    persona: tuple[str, ...] = ()
    persona_revision: int | None = None
    """Revision of the principal's persona document; None when the entries were given with the session."""
    tools: tuple[PinnedTool, ...] = ()
    skills: tuple[PinnedSkill, ...] = ()
    snapshot: tuple[str, ...] = ()
    snapshot_trace: str = ""
    snapshot_watermark: int = 0
    authority_scope_hashes: tuple[str, ...] | None = None
    """Sorted sha256 of granted scopes, outside the prompt; None when nobody stated an authority yet, which is not the same
    as an authority without scopes (spec, Authorization changes)."""
    deferral: Literal["index", "native"] = "index"
    """How the deferred tools are reached in this epoch: what the policy asks for where the model can, else the index."""
    had_search: bool = False
    """Whether an earlier epoch let the provider's own search find tools: what it left may refer to what is gone."""
    environment: dict[str, str] = {}
    """What the session is bound to, outside the prompt."""
    builder: str = BUILDER_VERSION
    renderer: str
    counter: str
    prefix_tokens: int = 0
    by_class: dict[str, ClassTokens] = {}
    row_counts: dict[str, tuple[int, int]] = {}
    """(tokens, entries) of each region A row that is not empty, by row number."""
    prefix_sha256: str = ""
    wire_prefix_sha256: str = ""
    warnings: tuple[str, ...] = ()
    redacted: bool = False
    """Its content was erased since: rows 4 and 8 are gone, the recorded hashes stand for their bytes."""

    @property
    def guarded(self) -> bool:
        """Whether drift guards judge what the model answers (capacity spec 7)."""
        if self.policy.guards == "auto":
            return self.engine == "working_set"
        return self.policy.guards == "on"

    @property
    def defined(self) -> tuple[PinnedTool, ...]:
        """Tools whose definitions stand in the prompt, in their stable order."""
        return tuple(tool for tool in self.tools if tool.group == "defined")

    @property
    def deferred(self) -> tuple[PinnedTool, ...]:
        """Tools that are reached without being defined in the prompt, in their stable order."""
        return tuple(tool for tool in self.tools if tool.group == "deferred")

    @property
    def indexed(self) -> tuple[PinnedTool, ...]:
        """Tools that row 6 names; none where the provider's own search finds them."""
        return self.deferred if self.deferral == "index" else ()

    @property
    def kept_aside(self) -> tuple[PinnedTool, ...]:
        """Tools whose definitions travel outside the prompt, for the provider's own search to find."""
        return self.deferred if self.deferral == "native" else ()

    @property
    def aside_tokens(self) -> dict[str, int]:
        """What each of those definitions takes once it is found (tokens by wire name)."""
        return {tool.wire_name: tool.tokens for tool in self.kept_aside}

    @property
    def searchable(self) -> frozenset[str] | None:
        """Wire names that results of the provider's search may still refer to (`RenderContext.searchable`)."""
        if self.deferral == "native":
            return frozenset(tool.wire_name for tool in (*self.defined, *self.deferred))
        return frozenset() if self.had_search else None

    @property
    def skipped_names(self) -> list[str]:
        """Tools left out of the roster, by name."""
        return sorted(tool.name for tool in self.tools if tool.group == "skipped")

    @property
    def pinned_names(self) -> frozenset[str]:
        """Ledger names of the tools that a model may know."""
        return frozenset(tool.name for tool in self.tools if tool.model_visible)

    def tool(self, name: str) -> PinnedTool | None:
        """The pinned tool of that ledger name."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def ledger_name(self, wire_name: str) -> str:
        """Reverse the pinned wire-name map; a name that is not in it stands for itself."""
        return next((tool.name for tool in self.tools if tool.wire_name == wire_name), wire_name)

    def wire_name(self, name: str) -> str | None:
        """The pinned wire name of a ledger name, None when the plan does not know the tool."""
        return next((tool.wire_name for tool in self.tools if tool.name == name), None)


def neutral_prefix_sha256(plan: Plan) -> str:
    """Hash of rows 1 to 8 with the whole pinned tool specifications, whatever the provider (design 6)."""
    return neutral_sha256(plan)


def row_texts(plan: Plan, nonce_key: bytes) -> dict[int, str]:
    """Text of each region A row but the tool definitions, by row number; empty rows are absent."""
    texts = {
        1: plan.policy_text,
        2: plan.framing,
        3: model_view(plan.instructions),
        4: persona_text(plan.persona),
        6: index_text(
            plan.indexed,
            caller=plan.wire_name(ControlTool.TOOL_CALL) or ControlTool.TOOL_CALL,
            nonce_key=nonce_key,
            by_server=plan.engine == "working_set",
        ),
        7: catalog_text(
            plan.skills,
            loader=plan.wire_name(ControlTool.SKILL_LOAD) or ControlTool.SKILL_LOAD,
            nonce_key=nonce_key,
        ),
        8: _snapshot_text(plan, nonce_key),
    }
    return {row: text for row, text in texts.items() if text.strip()}


def wire_prefix(plan: Plan, nonce_key: bytes) -> WirePrefix:
    """Region A as the renderers take it."""
    texts = row_texts(plan, nonce_key)
    return WirePrefix(
        system=tuple(texts[row] for row in sorted(texts)),
        tools=_definitions(plan.defined),
        deferred=_definitions(plan.kept_aside),
    )


def _definitions(tools: tuple[PinnedTool, ...]) -> tuple[WireTool, ...]:
    return tuple(
        WireTool(tool.wire_name, model_view(tool.description), tool.input_schema) for tool in tools
    )


def wire_prefix_sha256(plan: Plan, nonce_key: bytes, renderer: WireRenderer) -> str:
    """Hash of the prefix bytes as sent, cache markers excluded."""
    return hashlib.sha256(renderer.prefix_bytes(wire_prefix(plan, nonce_key))).hexdigest()


def plan_text(plan: Plan) -> str:
    """The plan as the text of its body: what storage keeps and `plan_of` reads back."""
    return json.dumps(plan.model_dump(mode="json"), ensure_ascii=True, sort_keys=True)


def plan_of(text: str) -> Plan:
    """Read a stored plan back."""
    return Plan.model_validate_json(text)


def redacted(plan: Plan) -> Plan:
    """The plan without what a person's erasure takes along; its recorded hashes stay."""
    return plan.model_copy(update={"snapshot": (), "snapshot_trace": "", "redacted": True})


def _snapshot_text(plan: Plan, nonce_key: bytes) -> str:
    if not plan.snapshot:
        return ""
    body = "\n".join(f"- {line.strip()}" for line in plan.snapshot)
    digest = sha256_hex(body.encode("utf-8", "surrogatepass"))
    return render_envelope(
        body,
        source="memory:snapshot",
        item_id="snapshot",
        trust=Trust.MEMORY,
        nonce=nonce(nonce_key, "snapshot", "whole", digest),
    )


__all__ = [
    "BUILDER_VERSION",
    "SAME_BYTES",
    "ClassTokens",
    "PinnedSkill",
    "PinnedTool",
    "Plan",
    "neutral_prefix_sha256",
    "plan_of",
    "plan_text",
    "redacted",
    "row_texts",
    "wire_prefix",
    "wire_prefix_sha256",
]
