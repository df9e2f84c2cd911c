"""P7: the pinned plan and its epochs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ctxengine.engine.budget.classes import PREFIX_CLASSES
from ctxengine.engine.layout import Row
from ctxengine.ledger.queries.plans import PlanDetail, PlannedTool, epochs, plan_detail
from inspector.access import Viewer, member
from inspector.contexts import PlanPage
from inspector.figures import number
from inspector.pages.numbers import whole
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.reasons import class_title, row_of
from inspector.render import Twin, show

_PREFIX = frozenset(name.value for name in PREFIX_CLASSES)
GROUPS = (
    ("defined", "in the tool definitions of every request"),
    ("deferred", "named in the index and reached through tool.call"),
    ("skipped", "left out of the roster, each with its reason"),
    ("hidden", "for the runtime alone; the model never sees them"),
)


@require_safe
@member()
def session_plan(
    request: HttpRequest, viewer: Viewer, session_id: UUID, twin: Twin
) -> HttpResponse:
    """What an epoch pinned; the current one unless `?epoch=` names another."""
    head = head_or_404(viewer, session_id)
    asked = whole(request, "epoch")
    plan = plan_detail(viewer.tenant_id, head.id, asked or head.epoch)
    if plan is None and asked is not None:
        raise Http404("No such epoch.")
    page = PlanPage(
        shell=shell_of(viewer, head, "Plan"),
        frame=frame_of(viewer, head, "session-plan"),
        epochs=epochs(viewer.tenant_id, head.id),
        plan=plan,
        texts=_texts(plan) if plan else (),
        groups=_groups(plan.tools) if plan else (),
        policy=tuple(_policy(plan.policy)) if plan else (),
    )
    return show(request, "session_plan.html", page, twin)


def _texts(plan: PlanDetail) -> tuple[tuple[Row, str, int | None], ...]:
    return tuple((row_of(text.row), text.text, text.tokens) for text in plan.texts)


def _groups(
    tools: tuple[PlannedTool, ...],
) -> tuple[tuple[str, str, tuple[PlannedTool, ...]], ...]:
    return tuple(
        (name, meaning, tuple(tool for tool in tools if tool.group == name))
        for name, meaning in GROUPS
    )


def _policy(policy: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Figures of the policy, then the caps of body classes; those of the prefix stand in their own table."""
    for name, value in policy.items():
        if name != "caps":
            yield name.replace("_", " "), _figure(value)
    for name, cap in policy.get("caps", {}).items():
        limits = [
            f"{number(cap[unit])} {unit}"
            for unit in ("tokens", "items")
            if cap.get(unit) is not None
        ]
        if limits and name not in _PREFIX:
            yield f"cap of {class_title(name).lower()}", ", ".join(limits)


def _figure(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int) else str(value)
