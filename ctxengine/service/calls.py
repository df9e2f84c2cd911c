"""Judging a call before anybody executes it (design 5; field cases on broken arguments and unknown tools)."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.lexeme import is_json_object
from ctxengine.engine.plan.plan import Plan


class Verdict(NamedTuple):
    """Whether a call may be executed."""

    arguments: str
    """What the runtime executes with: a JSON object's text, as the model wrote it where it wrote one."""
    refusal: str | None
    """The error result that goes back to the model instead; None when the call may be executed."""


def judge_call(plan: Plan, name: str, arguments: str) -> Verdict:
    """Judge one call. A refusal quotes nothing the model wrote, so that it may stand as platform text."""
    if plan.tools and plan.tool(name) is None:
        return Verdict(
            arguments, "There is no tool of that name. Call one of the tools you were given."
        )
    if not arguments.strip():
        return Verdict("{}", None)
    if not is_json_object(arguments):
        return Verdict(
            arguments,
            "The arguments are not a JSON object, so the call was not carried out. They may have been cut off; "
            "send the call again with complete arguments.",
        )
    return Verdict(arguments, None)
