"""Which handler answers which control tool."""

from __future__ import annotations

from ctxengine.engine.control.table import ControlTool
from ctxengine.service.control.answers import ControlAnswer, ControlCall, Handler
from ctxengine.service.control.find_tools import answer_find_tools
from ctxengine.service.control.recall import answer_recall
from ctxengine.service.control.skill_load import answer_skill_load
from ctxengine.service.control.working_state import answer_update

HANDLERS: dict[ControlTool, Handler] = {
    ControlTool.FIND_TOOLS: answer_find_tools,
    ControlTool.RECALL: answer_recall,
    ControlTool.SKILL_LOAD: answer_skill_load,
    ControlTool.UPDATE_WORKING_STATE: answer_update,
}


def answer_control(name: str, call: ControlCall) -> ControlAnswer:
    """Let the named control tool's handler answer."""
    return HANDLERS[ControlTool(name)](call)
