"""Jobs: work that outlives a request, as rows first and messages second (design 10)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class JobState(models.TextChoices):
    """Where a job stands; the last three are final."""

    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


class Job(models.Model):
    """One piece of background work. The broker's message is a wake-up call; this row decides."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    kind = models.CharField(max_length=48)
    """A name of the table of kinds, such as `compaction.summary`."""
    queue = models.CharField(max_length=16)
    """`compaction`, `probe`, `replay` or `upkeep`."""
    state = models.CharField(max_length=16, choices=JobState.choices, default=JobState.QUEUED)
    session_id = models.UUIDField(null=True, blank=True)
    subject = models.TextField(default="", blank=True)
    """What it works on, in a few words for people."""
    single_flight = models.CharField(max_length=128, default="", blank=True)
    """At most one unfinished job of a tenant has this key; empty for none."""
    arguments = models.JSONField(default=dict)
    cause = models.TextField(default="", blank=True)
    """Who or what asked for it."""
    attempts = models.IntegerField(default=0)
    max_attempts = models.IntegerField(default=5)
    worker = models.TextField(default="", blank=True)
    """Holder of the lease."""
    lease_until = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField()
    """Not to be started earlier: now for a new job, later after a failed attempt."""
    sent_at = models.DateTimeField(null=True, blank=True)
    """When its latest message went to the broker."""
    cancel_asked = models.BooleanField(default=False)
    phase = models.TextField(default="", blank=True)
    percent = models.IntegerField(default=0)
    log = models.JSONField(default=list)
    """Newest lines of what happened, each {"at", "text"}; never content."""
    result = models.JSONField(default=dict)
    error = models.JSONField(default=dict)
    """{"code", "detail"} of the latest failure."""
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "job"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "single_flight"],
                condition=Q(state__in=["queued", "running"]) & ~Q(single_flight=""),
                name="job_single_flight",
            )
        ]
        indexes = [
            models.Index(fields=["tenant_id", "-created_at", "id"], name="job_recent"),
            models.Index(
                fields=["not_before"],
                condition=Q(state__in=["queued", "running"]),
                name="job_unfinished",
            ),
            models.Index(fields=["tenant_id", "session_id"], name="job_of_session"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"


class SideCallRow(models.Model):
    """One call of our own to a provider (a summary, a probe, a count): what it cost and how it went (design 7.14)."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    at = models.DateTimeField()
    provider = models.CharField(max_length=48)
    model = models.TextField()
    purpose = models.CharField(max_length=32)
    """`summary`, `probe`, `count`, `note` or `compaction`."""
    prompt_version = models.CharField(max_length=64, default="", blank=True)
    session_id = models.UUIDField(null=True, blank=True)
    job_id = models.UUIDField(null=True, blank=True)
    outcome = models.CharField(max_length=24)
    """`completed`, or the code of the failure."""
    latency_ms = models.IntegerField(default=0)
    usage = models.JSONField(default=dict)
    """Disjoint buckets as reported, in tokens."""
    cost_microdollars = models.BigIntegerField(null=True, blank=True)
    """Millionths of a US dollar by the dated price table; null where no price is known."""

    class Meta:
        db_table = "side_call"
        indexes = [
            models.Index(fields=["tenant_id", "-at", "id"], name="side_call_recent"),
            models.Index(fields=["tenant_id", "session_id"], name="side_call_of_session"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.provider}/{self.model} {self.outcome}"


class OpenRefusal(models.Model):
    """A session that was refused at open, or a rotation that was, by the budget class that did not fit (design 5)."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    at = models.DateTimeField()
    code = models.CharField(max_length=48)
    budget_class = models.CharField(max_length=48)
    needed = models.IntegerField()
    """Tokens."""
    available = models.IntegerField()
    """Tokens."""
    engine = models.CharField(max_length=16)
    provider = models.CharField(max_length=48)
    model = models.TextField()
    agent_name = models.TextField(default="", blank=True)
    session_id = models.UUIDField(null=True, blank=True)
    """The session whose rotation was refused; null where none was opened."""

    class Meta:
        db_table = "open_refusal"
        indexes = [models.Index(fields=["tenant_id", "-at", "id"], name="open_refusal_recent")]

    def __str__(self) -> str:
        return f"{self.code} {self.budget_class}"
