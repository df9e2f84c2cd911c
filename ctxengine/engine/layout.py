"""The fifteen rows of a request and their regions (design 2 and 6; frozen-prefix spec, Two regions and one rule).

The region of a row is decided here, at design time. Anything that can differ between two requests of one session belongs to
region B.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ctxengine.engine.budget.classes import BudgetClass


class Region(StrEnum):
    """A: frozen for an epoch. B: rebuilt on every request."""

    A = "A"
    B = "B"


class Row(NamedTuple):
    """One position of the total order."""

    number: int
    region: Region
    name: str
    title: str
    trust: str
    """Trust level of its content, or `per entry`, `per item`, `per skill`."""
    budget_class: BudgetClass


ROWS: tuple[Row, ...] = (
    Row(1, Region.A, "policy", "Platform policy", "PLATFORM", BudgetClass.PLATFORM),
    Row(2, Region.A, "framing", "Framing", "PLATFORM", BudgetClass.PLATFORM),
    Row(
        3,
        Region.A,
        "instructions",
        "Agent instructions",
        "TRUSTED_CONFIGURATION",
        BudgetClass.AGENT,
    ),
    Row(4, Region.A, "persona", "Persona", "TRUSTED_CONFIGURATION", BudgetClass.PERSONA),
    Row(5, Region.A, "tools", "Tool definitions", "TRUSTED_CONFIGURATION", BudgetClass.TOOLS),
    Row(6, Region.A, "deferred", "Deferred tool index", "per entry", BudgetClass.DEFERRED),
    Row(7, Region.A, "skills", "Skill catalog", "per entry", BudgetClass.SKILL_CATALOG),
    Row(8, Region.A, "snapshot", "Memory snapshot", "MEMORY", BudgetClass.SNAPSHOT),
    Row(9, Region.B, "summary", "Summary or omission", "per item", BudgetClass.HISTORY),
    Row(10, Region.B, "conversation", "Conversation", "per item", BudgetClass.HISTORY),
    Row(11, Region.B, "skill_bodies", "Loaded skills", "per skill", BudgetClass.SKILL_BODIES),
    Row(12, Region.B, "working_state", "Working state", "per entry", BudgetClass.WORKING_STATE),
    Row(13, Region.B, "recall", "Knowledge, recall, corrections", "MEMORY", BudgetClass.RECALL),
    Row(14, Region.B, "runtime", "Runtime metadata", "PLATFORM", BudgetClass.RUNTIME),
    Row(15, Region.B, "input", "Current user message", "USER", BudgetClass.USER_INPUT),
)

ROW_BY_NAME = {row.name: row for row in ROWS}
