"""The Celery application: `celery -A workers.app worker` runs a worker for whatever CELERY_BROKER_URL names."""

from __future__ import annotations

import os
import warnings
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning
from django.conf import settings
from kombu import Exchange, Queue

from ctxengine.service.jobs.kinds import QUEUES, queue_on_broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
# Root is warned of messages that could run code; ours are JSON alone.
warnings.filterwarnings("ignore", category=SecurityWarning)

__all__ = ["app", "queue_on_broker", "transport_options"]

_LONGEST_JOB_S = 2 * 24 * 3600
"""A message is acknowledged when its job has ended, and the longest probe may take a day. RabbitMQ would close the channel
after half an hour (from 3.11.15 on a consumer says its own time); other brokers do not read it."""


def _queue(queue: str) -> Queue:
    name = queue_on_broker(queue)
    return Queue(
        name,
        Exchange(name, type="direct"),
        routing_key=name,
        durable=True,
        consumer_arguments={"x-consumer-timeout": _LONGEST_JOB_S * 1000},
    )


def transport_options(url: str) -> dict[str, Any]:
    """What a connection to the broker needs, by kind of broker."""
    if url.startswith("amqp"):
        return {"confirm_publish": True, "connect_timeout": 2}
    # Long enough that no message comes back while its job runs; lost ones are the sweeper's business.
    return {"visibility_timeout": 12 * 3600, "socket_connect_timeout": 2, "socket_timeout": 10}


app = Celery("ctxengine", include=["workers.tasks", "workers.lifecycle"])
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_transport_options=transport_options(settings.CELERY_BROKER_URL),
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_connection_timeout=2,
    broker_heartbeat=10,
    task_queues=[_queue(name) for name in QUEUES],
    task_default_queue=queue_on_broker("upkeep"),
    task_create_missing_queues=False,
    task_serializer="json",
    accept_content=["json"],
    # The row knows what became of a job; the broker keeps no results.
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    # Who lives is seen in Postgres; nothing is broadcast through the broker.
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    worker_soft_shutdown_timeout=5.0,
    worker_max_tasks_per_child=500,
    timezone="UTC",
)
