"""The job `transcript.reconstruct`: rebuild the requests that an import outlined, part by part (design 10).

Each part is a transaction of its own and leaves out what is rebuilt already, so that an attempt goes on where the last one
ended.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ctxengine.ledger.models import RequestRow
from ctxengine.service.imports.complete import complete_in_parts
from ctxengine.service.jobs.context import JobContext


def run(context: JobContext) -> dict[str, Any]:
    """Rebuild the requests of the sessions that the job names; gives how many this attempt rebuilt."""
    sessions = [UUID(session) for session in context.arguments["sessions"]]
    tenant_id = context.job.tenant_id
    total = RequestRow.objects.filter(
        tenant_id=tenant_id, session_id__in=sessions, reconstructed=True, request_sha256=""
    ).count()
    done = 0
    for session_id in sessions:
        for part in complete_in_parts(tenant_id=tenant_id, session_id=session_id):
            done += part
            context.check()
            context.progress("rebuilding", 100 * done // max(1, total))
    return {"requests": done}
