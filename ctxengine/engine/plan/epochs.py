"""Why a plan is rebuilt: the one table of rotation reasons (frozen-prefix spec, Prefix epochs)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class EpochReason(StrEnum):
    """Codes of rotation reasons."""

    MODEL_CHANGED = "model_changed"
    PERSONA_CHANGED = "persona_changed"
    AGENT_CHANGED = "agent_changed"
    RUN_AUTHORITY_CHANGED = "run_authority_changed"
    ENVIRONMENT_CHANGED = "environment_changed"
    SNAPSHOT_MISSING = "snapshot_missing"
    POLICY_CHANGED = "policy_changed"
    TOOL_REMOVED_FOR_SECURITY = "tool_removed_for_security"
    TOOL_PROMOTED = "tool_promoted"
    OPERATOR = "operator"
    BUILDER_CHANGED = "builder_changed"
    PREFIX_HASH_CANONICALIZED = "prefix_hash_canonicalized"
    IMPORT_CONTINUED = "import_continued"


class ReasonRule(NamedTuple):
    """When a reason applies and whether bytes change."""

    reason: EpochReason
    meaning: str
    next_step: bool
    """True: applies at the next step. False: at the next run start, together with the others (design 7.16)."""
    recaches: bool


REASON_RULES: tuple[ReasonRule, ...] = (
    ReasonRule(EpochReason.MODEL_CHANGED, "The session was routed to another model.", False, True),
    ReasonRule(EpochReason.PERSONA_CHANGED, "A new persona revision was saved.", False, True),
    ReasonRule(EpochReason.AGENT_CHANGED, "Another agent version was selected.", False, True),
    ReasonRule(
        EpochReason.RUN_AUTHORITY_CHANGED, "A new run was granted more scopes.", False, True
    ),
    ReasonRule(EpochReason.ENVIRONMENT_CHANGED, "Another environment was bound.", False, True),
    ReasonRule(EpochReason.SNAPSHOT_MISSING, "The memory snapshot is gone.", False, True),
    ReasonRule(
        EpochReason.POLICY_CHANGED, "A new budget policy version was selected.", False, True
    ),
    ReasonRule(
        EpochReason.TOOL_REMOVED_FOR_SECURITY, "A tool had to leave the prompt at once.", True, True
    ),
    ReasonRule(
        EpochReason.TOOL_PROMOTED,
        "A tool that the model found moved into the definitions.",
        True,
        True,
    ),
    ReasonRule(EpochReason.OPERATOR, "An operator rebuilt the plan by hand.", True, True),
    ReasonRule(EpochReason.BUILDER_CHANGED, "A newer builder renders other bytes.", False, True),
    ReasonRule(
        EpochReason.PREFIX_HASH_CANONICALIZED,
        "The same bytes under a hash that no longer depends on an unstable order.",
        False,
        False,
    ),
    ReasonRule(
        EpochReason.IMPORT_CONTINUED,
        "An imported session goes on live, under the default policy.",
        True,
        True,
    ),
)

RULE_OF_REASON = {rule.reason: rule for rule in REASON_RULES}
