"""Events: the append-only, hash-chained record of a session (design 4)."""

from __future__ import annotations

from django.db import models


class Event(models.Model):
    """One message as it arrived, or one act. A trigger refuses UPDATE and DELETE."""

    pk = models.CompositePrimaryKey("tenant_id", "session_id", "sequence")
    tenant_id = models.UUIDField()
    session_id = models.UUIDField()
    sequence = models.BigIntegerField()
    type = models.CharField(max_length=64)
    run_id = models.UUIDField(null=True, blank=True)
    trust = models.CharField(max_length=32)
    payload = models.JSONField(default=dict)
    """Only fields that we author."""
    body_id = models.UUIDField(null=True, blank=True)
    body_sha256 = models.CharField(max_length=64, default="", blank=True)
    """sha256(salt + bytes) of the body."""
    body_length = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    """Tokens of the event's items as counted at append; covered by the hash."""
    prev_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)
    idempotency_key = models.CharField(max_length=255, default="", blank=True)
    recorded_at = models.DateTimeField()

    class Meta:
        db_table = "event"
        indexes = [
            models.Index(fields=["tenant_id", "type", "-recorded_at"], name="event_type_recent"),
            models.Index(
                fields=["tenant_id", "session_id", "type", "-sequence"], name="event_by_type"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sequence} {self.type}"
