"""Which handler answers which control tool."""

from __future__ import annotations

from ctxengine.engine.control.table import ControlTool
from ctxengine.service.control.answers import ControlAnswer, ControlCall, Handler
from ctxengine.service.control.recall import answer_recall

HANDLERS: dict[ControlTool, Handler] = {
    ControlTool.RECALL: answer_recall,
}


def answer_control(name: str, call: ControlCall) -> ControlAnswer:
    """Let the named control tool's handler answer."""
    return HANDLERS[ControlTool(name)](call)
