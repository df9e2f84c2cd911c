"""P14: the audit log, with what each act changed."""

from __future__ import annotations

import json

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from ctxengine.ledger.queries.audit import (
    AuditFilter,
    AuditLine,
    AuditQuery,
    audit_names,
    every_audit,
    list_audit,
)
from ctxengine.ledger.queries.paging import BadCursor, Page, parse_cursor
from inspector.access import Viewer, member
from inspector.console_contexts import AuditPage
from inspector.contexts import Shell
from inspector.filters import AskError, checked, free, moment, page_size, read_moment, size_of
from inspector.pages.operations import operations_tabs
from inspector.render import Twin, csv_stream, json_stream, show

_FILTERS = ("action", "actor", "target", "from", "to")
ASKS = {
    "action": free,
    "actor": free,
    "target": free,
    "from": moment,
    "to": moment,
    "size": page_size,
    "after": free,
}
CSV_HEADER = ("id", "at", "actor", "action", "target", "reason", "before", "after")


@require_safe
@member()
def audit(request: HttpRequest, viewer: Viewer, twin: Twin) -> HttpResponseBase:
    """Every act, the newest first; the address is the whole state."""
    chosen = {name: request.GET.get(name, "") for name in _FILTERS}
    where, query, problem = AuditFilter(), AuditQuery(), ""
    try:
        checked(request, ASKS)
        where = AuditFilter(
            action=chosen["action"],
            actor=chosen["actor"],
            target=chosen["target"],
            since=read_moment(chosen["from"]) if chosen["from"] else None,
            until=read_moment(chosen["to"]) if chosen["to"] else None,
        )
        after = request.GET.get("after", "")
        query = AuditQuery(where, parse_cursor(after) if after else None, size_of(request))
    except (AskError, BadCursor) as error:
        problem = str(error)
    if not problem and twin is Twin.CSV:
        return csv_stream("audit", CSV_HEADER, map(_csv, every_audit(viewer.tenant_id, where)))
    if not problem and twin is Twin.JSON:
        return json_stream(every_audit(viewer.tenant_id, where))
    none: Page[AuditLine] = Page((), "")
    page = AuditPage(
        shell=Shell(viewer, "Audit", "jobs"),
        tabs=operations_tabs(viewer, "audit"),
        problem=problem,
        chosen=chosen,
        actions=audit_names(viewer.tenant_id, "action"),
        actors=audit_names(viewer.tenant_id, "actor"),
        page=none if problem else list_audit(viewer.tenant_id, query),
        filtered=where != AuditFilter() or bool(problem),
        address=request.GET.urlencode(),
    )
    answer = Twin.HTML if twin is Twin.HTML else Twin.JSON
    return show(request, "audit.html", page, answer, 400 if problem else 200)


def _csv(line: AuditLine) -> tuple[object, ...]:
    return (
        line.id, line.at, line.actor, line.action, line.target, line.reason,
        json.dumps(line.before, ensure_ascii=False), json.dumps(line.after, ensure_ascii=False),
    )  # fmt: skip
