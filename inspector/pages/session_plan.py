"""P7: the pinned plan of an epoch: texts, tool roster with reasons, skills, persona, snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from ctxengine.engine.budget.classes import PREFIX_CLASSES
from ctxengine.engine.control.table import CONTROL_RULES
from ctxengine.engine.layout import Row
from ctxengine.ledger.queries.epochs import plan_parts
from ctxengine.ledger.queries.plans import PlanDetail, PlannedTool, epochs, plan_detail
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.access import session_of
from ctxengine.service.calls import revoked_tools
from ctxengine.service.wiring import log_of
from inspector.access import Viewer, member
from inspector.act_contexts import PlanPage, RosterGroup, RosterTool
from inspector.epochdiff import policy_figures
from inspector.filters import free, one_of, whole_number
from inspector.pages.numbers import whole
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.reasons import class_title, row_of
from inspector.render import Twin, csv_stream, show

GROUPS = (
    ("defined", "in the tool definitions of every request"),
    ("deferred", "named in the index and reached through tool.call"),
    ("skipped", "left out of the roster, each with its reason"),
    ("hidden", "kept from the model, each with its reason"),
)
_SEARCHED = "kept out of the prompt until the provider's own search finds them"
"""What deferred means where the provider defers natively."""
CSV_HEADER = (
    "name", "wire_name", "group", "reason", "tokens", "revoked", "side_effect", "result_trust",
    "required_scopes", "server",
)  # fmt: skip
_PREFIX = frozenset(f"cap of {class_title(name.value).lower()}" for name in PREFIX_CLASSES)
_CONTROL = frozenset(rule.name.value for rule in CONTROL_RULES)
_ACTS_ON = frozenset({"defined", "deferred"})
_FACTS = ("persona", "snapshot", "authority", "environment")
ASKS = {"epoch": whole_number, "done": one_of("revoked", "restored"), "tool": free}


@require_safe
@member(asks=ASKS)
def session_plan(
    request: HttpRequest, viewer: Viewer, session_id: UUID, twin: Twin
) -> HttpResponseBase:
    """What an epoch pinned; the current one unless `?epoch=` names another."""
    head = head_or_404(viewer, session_id)
    asked = whole(request, "epoch")
    plan = plan_detail(viewer.tenant_id, head.id, asked or head.epoch)
    if plan is None and asked is not None:
        raise Http404("No such epoch.")
    groups = _groups(viewer, head, plan) if plan else ()
    if twin is Twin.CSV:
        rows = (_csv(entry) for group in groups for entry in group.tools)
        return csv_stream("tools", CSV_HEADER, rows)
    page = PlanPage(
        shell=shell_of(viewer, head, "Plan"),
        frame=frame_of(viewer, head, "session-plan"),
        epochs=epochs(viewer.tenant_id, head.id),
        plan=plan,
        texts=_texts(plan) if plan else (),
        groups=groups,
        policy=tuple(_policy(plan.policy)) if plan else (),
        facts=_facts(viewer, head, plan) if plan else (),
        done=request.GET.get("done", "") if request.GET.get("done") in _DONE else "",
        tool=request.GET.get("tool", "")[:200],
    )
    return show(request, "session_plan.html", page, twin)


_DONE = frozenset({"revoked", "restored"})


def _texts(plan: PlanDetail) -> tuple[tuple[Row, str, int | None], ...]:
    return tuple((row_of(text.row), text.text, text.tokens) for text in plan.texts)


def _facts(viewer: Viewer, head: SessionHead, plan: PlanDetail) -> tuple[tuple[str, str], ...]:
    parts = plan_parts(viewer.tenant_id, head.id, plan.line.epoch)
    found = dict(parts.facts) if parts else {}
    return tuple((name, found[name]) for name in _FACTS if name in found)


def _groups(viewer: Viewer, head: SessionHead, plan: PlanDetail) -> tuple[RosterGroup, ...]:
    revoked = revoked_tools(log_of(session_of(viewer.actor, head.id)))
    # An older epoch is only looked at: acts concern what is in force.
    may_act = viewer.is_operator and head.state == "open" and plan.line.epoch == head.epoch
    return tuple(
        RosterGroup(name, meaning, tools, sum(entry.tool.tokens for entry in tools))
        for name, meaning in _meanings(plan)
        for tools in [_tools(plan.tools, name, revoked, may_act)]
    )


def _meanings(plan: PlanDetail) -> Iterator[tuple[str, str]]:
    searched = plan.deferral == "native"
    for name, meaning in GROUPS:
        yield name, _SEARCHED if searched and name == "deferred" else meaning


def _tools(
    tools: tuple[PlannedTool, ...], group: str, revoked: Collection[str], may_act: bool
) -> tuple[RosterTool, ...]:
    found = []
    for tool in tools:
        if tool.group != group:
            continue
        gone = tool.name in revoked
        own = tool.name in _CONTROL and tool.reason == "the platform's own"
        act = "restore" if gone else "revoke" if group in _ACTS_ON and not own else ""
        found.append(RosterTool(tool, gone, act if may_act else ""))
    return tuple(found)


def _policy(policy: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Figures of the policy, then the caps of body classes; those of the prefix stand in their own table."""
    yield "version", f"{policy.get('name', '')}@{policy.get('version', '')}"
    for name, value in policy_figures(policy).items():
        if name not in _PREFIX:
            yield name, value


def _csv(entry: RosterTool) -> tuple[object, ...]:
    tool = entry.tool
    return (
        tool.name, tool.wire_name, tool.group, tool.reason, tool.tokens, entry.revoked,
        tool.side_effect, tool.result_trust, " ".join(tool.required_scopes), tool.server,
    )  # fmt: skip
