"""Wake-up messages: sent after the commit, through the sender that settings name, and never a reason to fail."""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from ctxengine.ledger.models import Job

_log = logging.getLogger(__name__)

Send = Callable[[UUID, UUID, str], None]
"""(tenant, job, queue): hands one message to the broker, or raises."""


def send_message(job: Job) -> bool:
    """Wake a worker for a job and remember when; False where there is no broker, and the sweeper will send it."""
    sent = deliver(job.tenant_id, job.id, job.queue)
    if sent:
        Job.objects.filter(tenant_id=job.tenant_id, id=job.id).update(sent_at=Now())
    return sent


def deliver(tenant_id: UUID, job_id: UUID, queue: str) -> bool:
    """Hand a message to the broker; whether it took it."""
    path: str = settings.CTX_JOB_SENDER
    if not path:
        return False
    send: Send = import_string(path)
    try:
        send(tenant_id, job_id, queue)
    except Exception as error:
        # Whatever a broker's client raises: the row is there, and the sweeper sends later.
        _log.warning("no message for job %s (%s)", job_id, type(error).__name__)
        return False
    return True
