"""The one table of control tools: what the model is told about each, and when it is advertised (design 5)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ControlTool(StrEnum):
    """Names of control tools."""

    RECALL = "recall"
    TOOL_CALL = "tool.call"
    FIND_TOOLS = "find_tools"
    SKILL_LOAD = "skill.load"
    UPDATE_WORKING_STATE = "context.update_working_state"


class ControlRule(NamedTuple):
    """One control tool."""

    name: ControlTool
    description: str
    schema: str
    """Canonical JSON text of its input schema."""
    advertised: str
    """When it stands in a plan, for people."""


CONTROL_RULES: tuple[ControlRule, ...] = (
    ControlRule(
        ControlTool.RECALL,
        "Reads back anything of this session that is not shown in full: a pointer's or an evidence id, an event number, a turn "
        "by its number, a presentation; all of it, a range of its lines, or a range of characters. Give exactly one of id, "
        "turn and presentation.",
        '{"properties":{"chars":{"description":"Characters to read, such as 1-8000; of the lines where both are given.",'
        '"type":"string"},"id":{"description":"An item id such as 12.0, or an event number such as 12.","type":"string"},'
        '"lines":{"description":"Lines to read, such as 1-200.","type":"string"},"presentation":{"description":'
        '"Id of something that was shown to the user, such as 40.","type":"string"},"turn":{"description":'
        '"Number of a turn to read as it was, such as 3.","type":"string"}},"type":"object"}',
        "in every live session",
    ),
    ControlRule(
        ControlTool.TOOL_CALL,
        "Calls a tool that is listed by name without being defined. Arguments that do not fit are answered with its schema.",
        '{"properties":{"arguments":{"description":"Arguments of that tool.","type":"object"},'
        '"name":{"description":"Name of the tool, as listed.","type":"string"}},"required":["name","arguments"],'
        '"type":"object"}',
        "while the plan defers a tool",
    ),
    ControlRule(
        ControlTool.FIND_TOOLS,
        "Gives whole descriptions and input schemas of tools that are listed by name without being defined; they can be called "
        "from then on.",
        '{"properties":{"query":{"description":"What the tool should do, or its name as listed.","type":"string"}},'
        '"required":["query"],"type":"object"}',
        "in a working_set session while the plan lists a tool",
    ),
    ControlRule(
        ControlTool.SKILL_LOAD,
        "Loads a skill of the catalog. Its text then stands in the conversation to the end of the session.",
        '{"properties":{"name":{"description":"Name of the skill, as listed.","type":"string"}},"required":["name"],'
        '"type":"object"}',
        "when the skill catalog is not empty",
    ),
    ControlRule(
        ControlTool.UPDATE_WORKING_STATE,
        "Notes what must not be forgotten: what the session is about, the user's constraints, tasks, facts with the events "
        "they rest on, the next step. A constraint stays until the user lifts it. Cite the event a fact comes from.",
        '{"properties":{"add_constraints":{"items":{"type":"string"},"type":"array"},"add_facts":{"items":{"properties":'
        '{"source_event_ids":{"items":{"type":"integer"},"type":"array"},"statement":{"type":"string"}},"required":'
        '["statement"],"type":"object"},"type":"array"},"next_action":{"type":"string"},"objective":{"type":"string"},'
        '"resolve_questions":{"description":"Ids of open questions the user has answered.","items":{"type":"string"},'
        '"type":"array"},"upsert_tasks":{"items":{"properties":{"id":{"type":"string"},"status":{"enum":["open","active",'
        '"blocked","completed","dropped"],"type":"string"},"title":{"type":"string"},"tool":{"description":"Tool whose next '
        'result completes the task.","type":"string"}},"type":"object"},"type":"array"}},"type":"object"}',
        "in every live session",
    ),
)

RULE_OF_CONTROL = {rule.name: rule for rule in CONTROL_RULES}


def control_rule(name: str) -> ControlRule | None:
    """The rule of a control tool of that name, None for any other tool."""
    return next((rule for rule in CONTROL_RULES if rule.name.value == name), None)
