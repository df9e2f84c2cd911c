"""Judging a call before anybody executes it (design 5; frozen-prefix spec, Authorization changes).

A definition in a prompt grants nothing: what was revoked or reduced since the plan was pinned is refused here, with an answer
that says so plainly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxengine.engine.control.arguments import faults_of
from ctxengine.engine.control.table import ControlTool
from ctxengine.engine.control.unwrap import ledger_name, unwrap
from ctxengine.engine.events import EventType
from ctxengine.engine.lexeme import is_json_object
from ctxengine.engine.plan.plan import PinnedTool, Plan
from ctxengine.engine.ports import SessionLog
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import RunRow
from ctxengine.service.spec_base import LONGEST_CALL_ID

UNKNOWN = "There is no tool of that name. Call one of the tools you were given."
NO_OBJECT = (
    "The arguments are not a JSON object, so the call was not carried out. They may have been cut off; "
    "send the call again with complete arguments."
)


_HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which not every reader of JSON can take."""


class Refusal(NamedTuple):
    """The error result that goes back to the model in a call's place."""

    code: str
    text: str
    trust: Trust = Trust.PLATFORM
    """That of what the text quotes."""
    source: str = "platform"


class Verdict(NamedTuple):
    """Whether a call may be executed."""

    arguments: str
    """What the runtime executes with: a JSON object's text, as the model wrote it where it wrote one."""
    refused: Refusal | None = None
    """None when the call may be executed."""
    name: str = ""
    """The tool that is meant: behind `tool.call`, the deferred one."""

    @property
    def refusal(self) -> str | None:
        """Text of the refusal."""
        return self.refused.text if self.refused else None


@dataclass(frozen=True, slots=True)
class Authority:
    """What is allowed at the moment of a call, whatever the prompt advertises."""

    scopes: frozenset[str] | None = None
    """Scopes of the run; None when nobody stated any."""
    revoked: Collection[str] = field(default_factory=frozenset)
    """Ledger names of tools whose calls are refused."""


def authority_of(log: SessionLog, run: RunRow) -> Authority:
    """What the log and the run say is allowed now."""
    # Read anew: an operator may have reduced it while the model was answering.
    settings = (
        RunRow.objects.filter(tenant_id=run.tenant_id, id=run.id)
        .values_list("settings", flat=True)
        .get()
    )
    stated = settings.get("authority_stated", False)
    scopes = frozenset(settings.get("scopes", ())) if stated else None
    return Authority(scopes, revoked_tools(log))


def told_id(call_id: str | None, wire_call_id: str) -> str:
    """The id by which a runtime is told of a call: the provider's own, unless no report of its result could name it."""
    if not call_id or len(call_id) > LONGEST_CALL_ID or _HALF.search(call_id):
        return wire_call_id
    return call_id


def revoked_tools(log: SessionLog) -> frozenset[str]:
    """Tools revoked and not restored since."""
    revoked = {
        event.payload["name"]: event.sequence
        for event in reversed(log.every(EventType.TOOL_REVOKED))
    }
    if not revoked:
        return frozenset()
    restored = {
        event.payload["name"]: event.sequence
        for event in reversed(log.every(EventType.TOOL_RESTORED))
    }
    return frozenset(name for name, at in revoked.items() if restored.get(name, 0) < at)


def judge_call(
    plan: Plan, name: str, arguments: str, authority: Authority = Authority()
) -> Verdict:
    """Judge one call. Refusals of platform trust quote nothing that the model or a server wrote."""
    tool = plan.tool(name)
    # A runtime that declares no tools of its own has a roster we do not know: its calls are its business.
    declared = any(not known.control for known in plan.tools)
    if (tool is None and declared) or (tool is not None and not (tool.callable or tool.control)):
        return _unavailable(tool, name, arguments)
    given = arguments if arguments.strip() else "{}"
    if not is_json_object(given):
        return Verdict(given, Refusal("invalid_arguments", NO_OBJECT), name)
    if tool is not None and tool.control and name == ControlTool.TOOL_CALL:
        return _behind(plan, given, authority)
    refused = _withheld(tool, authority) if tool is not None else None
    if refused is None and tool is not None and tool.group == "deferred":
        refused = _unfit(tool, given)
    return Verdict(given, refused, name)


def _behind(plan: Plan, arguments: str, authority: Authority) -> Verdict:
    """Judge the call that stands inside a call of `tool.call`: everything happens under the deferred tool's own name."""
    inner = unwrap(arguments)
    name = ledger_name(plan, inner.name)
    tool = plan.tool(name)
    if tool is None or not tool.callable:
        return _unavailable(tool, name or ControlTool.TOOL_CALL.value, arguments)
    if tool.group == "defined":
        text = "That tool is defined: call it directly."
        return Verdict(inner.arguments, Refusal("defined_tool", text), name)
    if not is_json_object(inner.arguments):
        return Verdict(inner.arguments, Refusal("invalid_arguments", NO_OBJECT), name)
    refused = _withheld(tool, authority) or _unfit(tool, inner.arguments)
    return Verdict(inner.arguments, refused, name)


def _unavailable(tool: PinnedTool | None, name: str, arguments: str) -> Verdict:
    if tool is not None and tool.removed:
        return Verdict(arguments, _gone("tool_removed"), name)
    return Verdict(arguments, Refusal("unknown_tool", UNKNOWN), name)


def _withheld(tool: PinnedTool, authority: Authority) -> Refusal | None:
    if tool.name in authority.revoked:
        return _gone("tool_revoked")
    if authority.scopes is not None and not set(tool.required_scopes) <= authority.scopes:
        return _gone("scope_missing")
    return None


def _gone(code: str) -> Refusal:
    return Refusal(
        code,
        json.dumps(
            {
                "error": code,
                "detail": "This capability is no longer available in this session. The call was not carried out; repeating it "
                "will not help. Go on without it, or say that you cannot.",
                "retry": False,
            }
        ),
    )


def _unfit(tool: PinnedTool, arguments: str) -> Refusal | None:
    """Hold arguments against a schema that the model has not seen; the answer shows it."""
    faults = faults_of(tool.input_schema, arguments)
    if not faults:
        return None
    said = "; ".join(f"{f.keyword}: {f.expected}" if f.expected else f.keyword for f in faults)
    # The schema is quoted as it is pinned: from a server it is a server's text.
    trust = Trust.EXTERNAL_UNTRUSTED if tool.discovered else Trust.TRUSTED_CONFIGURATION
    return Refusal(
        "invalid_arguments",
        f"The arguments do not fit the tool's input schema, so the call was not carried out ({said}). The schema:\n"
        f"{tool.input_schema}",
        trust,
        f"schema:{tool.name}",
    )
