"""A plan: the pinned region A of a session, how it renders and what its hashes cover (design 2, 6)."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.budget.policy import BudgetPolicy
from ctxengine.engine.canonical import canonical_bytes, sha256_hex
from ctxengine.engine.trust.envelope import nonce, render_envelope
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.wire.base import WirePrefix, WireRenderer, WireTool

BUILDER_VERSION = "builder@1"


class PinnedTool(BaseModel):
    """A tool as pinned: everything about it, of which the model sees name, description and schema."""

    model_config = ConfigDict(frozen=True)

    name: str
    wire_name: str
    description: str
    input_schema: str
    """Model-visible JSON text (see `plan.schema`)."""
    output_schema: str | None = None
    group: Literal["defined", "deferred", "skipped", "hidden"] = "defined"
    reason: str = ""
    tokens: int = 0
    required_scopes: tuple[str, ...] = ()
    side_effect: str = "world"
    result_trust: Trust = Trust.EXTERNAL_UNTRUSTED
    server: str = ""
    serves: tuple[str, ...] = ()
    observes: tuple[str, ...] = ()
    required: bool = False
    always_loaded: bool = False
    presentation: str | None = None
    synthesised: bool = False
    control: bool = False
    """Answered by the platform itself."""


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
    policy_text: str
    framing: str
    framing_version: str
    instructions: str
    persona: tuple[str, ...] = ()
    tools: tuple[PinnedTool, ...] = ()
    snapshot: tuple[str, ...] = ()
    snapshot_trace: str = ""
    snapshot_watermark: int = 0
    authority_scope_hashes: tuple[str, ...] = ()
    """Sorted sha256 of granted scopes; outside the prompt (spec, Authorization changes)."""
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

    @property
    def defined(self) -> tuple[PinnedTool, ...]:
        """Tools whose definitions stand in the prompt, in their stable order."""
        return tuple(tool for tool in self.tools if tool.group == "defined")

    @property
    def skipped_names(self) -> list[str]:
        """Tools left out of the roster, by name."""
        return sorted(tool.name for tool in self.tools if tool.group == "skipped")

    def tool(self, name: str) -> PinnedTool | None:
        """The pinned tool of that ledger name."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def ledger_name(self, wire_name: str) -> str:
        """Reverse the pinned wire-name map; a name that is not in it stands for itself."""
        return next((tool.name for tool in self.tools if tool.wire_name == wire_name), wire_name)

    def wire_name(self, name: str) -> str | None:
        """The pinned wire name of a ledger name, None when the plan does not know the tool."""
        return next((tool.wire_name for tool in self.tools if tool.name == name), None)


_PROVIDER_NEUTRAL = (
    "policy_text",
    "framing",
    "instructions",
    "persona",
    "tools",
    "snapshot",
)


def neutral_prefix_sha256(plan: Plan) -> str:
    """Hash of rows 1 to 8 with the whole pinned tool specifications, whatever the provider (design 6)."""
    data = plan.model_dump(mode="json")
    rows: dict[str, Any] = {name: data[name] for name in _PROVIDER_NEUTRAL}
    # Wire names are one provider's spelling and token counts one counter's opinion: neither is identity.
    rows["tools"] = [
        {key: value for key, value in tool.items() if key not in {"wire_name", "tokens", "reason"}}
        for tool in rows["tools"]
    ]
    return sha256_hex(canonical_bytes(rows))


def row_texts(plan: Plan, nonce_key: bytes) -> dict[int, str]:
    """Text of each region A row but the tool definitions, by row number; empty rows are absent."""
    texts = {
        1: plan.policy_text,
        2: plan.framing,
        3: model_view(plan.instructions),
        4: _persona_text(plan.persona),
        8: _snapshot_text(plan, nonce_key),
    }
    return {row: text for row, text in texts.items() if text.strip()}


def wire_prefix(plan: Plan, nonce_key: bytes) -> WirePrefix:
    """Region A as the renderers take it."""
    texts = row_texts(plan, nonce_key)
    return WirePrefix(
        system=tuple(texts[row] for row in sorted(texts)),
        tools=tuple(
            WireTool(tool.wire_name, model_view(tool.description), tool.input_schema)
            for tool in plan.defined
        ),
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


def _persona_text(entries: tuple[str, ...]) -> str:
    kept = [model_view(entry).strip() for entry in entries]
    lines = [f"- {entry}" for entry in kept if entry]
    return "Persona:\n" + "\n".join(lines) if lines else ""


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
