"""Requests: what was built, from which inputs, and why it looks as it does (design 4, 6)."""

from __future__ import annotations

from django.db import models
from django.db.models import Value


class RequestRow(models.Model):
    """One built request. Its bytes are not kept: `inputs` and the ledger rebuild them."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    session_id = models.UUIDField()
    run_id = models.UUIDField()
    number = models.IntegerField()
    """Place in the session, from 1."""
    run_number = models.IntegerField()
    step = models.IntegerField()
    """Place in the run, from 1; `run_number.step` is how people name a request."""
    content_sequence = models.BigIntegerField()
    """Sequence of the newest content event it saw: with the run, what makes a step."""
    act_sequence = models.BigIntegerField(default=0)
    """Sequence of the newest operator act or rotation it saw."""
    epoch = models.IntegerField()
    engine = models.CharField(max_length=16)
    provider = models.CharField(max_length=48)
    model = models.TextField()
    inputs = models.JSONField()
    manifest = models.JSONField()
    """See `engine.manifest.Manifest`."""
    budget = models.JSONField()
    cache = models.JSONField(default=dict)
    """Markers asked for, predicted reads and writes, warnings."""
    request_sha256 = models.CharField(max_length=64)
    prefix_sha256 = models.CharField(max_length=64)
    wire_prefix_sha256 = models.CharField(max_length=64)
    total_tokens = models.IntegerField()
    body_bytes = models.BigIntegerField()
    body_chars = models.BigIntegerField(default=0, db_default=0)
    """Characters of the body; 0 for requests from before they were counted."""
    status = models.CharField(max_length=16, default="built")
    """`built`, `answered` or `failed`."""
    usage = models.JSONField(default=dict)
    """As reported by the provider, in disjoint buckets; empty when not reported."""
    verdict = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    """What was predicted of the cache against what was reported, with the cause of a shortfall; empty until answered."""
    error = models.JSONField(default=dict)
    reconstructed = models.BooleanField(default=False)
    """Made from an imported transcript; never sent by us."""
    build_ms = models.FloatField(default=0)
    created_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "request"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "run_id", "content_sequence", "act_sequence"],
                name="request_one_per_step",
            )
        ]
        indexes = [
            models.Index(fields=["tenant_id", "session_id", "number"], name="request_in_session"),
            models.Index(fields=["tenant_id", "-created_at"], name="request_recent"),
            models.Index(fields=["tenant_id", "request_sha256"], name="request_hash"),
            # Retention looks for old item lists; what it has thinned before is not looked at again.
            models.Index(
                fields=["tenant_id", "created_at", "id"],
                condition=~models.Q(manifest__has_key="expired_at"),
                name="request_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_number}.{self.step}"
