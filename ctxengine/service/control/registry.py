"""Which handler answers which control tool."""

from __future__ import annotations

from ctxengine.engine.control.table import ControlTool
from ctxengine.service.control.answers import ControlAnswer, ControlCall, Handler
from ctxengine.service.control.recall import answer_recall
from ctxengine.service.control.skill_load import answer_skill_load

HANDLERS: dict[ControlTool, Handler] = {
    ControlTool.RECALL: answer_recall,
    ControlTool.SKILL_LOAD: answer_skill_load,
}


def answer_control(name: str, call: ControlCall) -> ControlAnswer:
    """Let the named control tool's handler answer."""
    return HANDLERS[ControlTool(name)](call)
