"""The audit log: who did what, why, with before and after (design 9)."""

from __future__ import annotations

from django.db import models


class AuditEntry(models.Model):
    """One act of a person, a key or the system. Append-only."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    at = models.DateTimeField()
    actor = models.TextField()
    """`user:NAME`, `key:PREFIX` or `system`."""
    action = models.CharField(max_length=64)
    target = models.TextField(default="", blank=True)
    reason = models.TextField(default="", blank=True)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)

    class Meta:
        db_table = "audit_entry"
        indexes = [models.Index(fields=["tenant_id", "-at"], name="audit_recent")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.actor} {self.action}"
