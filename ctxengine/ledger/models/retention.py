"""How long a tenant keeps what; one row for each kind whose time is not the default (design 4, erasure)."""

from __future__ import annotations

from django.db import models


class RetentionRule(models.Model):
    """A tenant's keeping time for one kind of what is stored."""

    pk = models.CompositePrimaryKey("tenant_id", "kind")
    tenant_id = models.UUIDField()
    kind = models.CharField(max_length=24)
    """A name of the table of kinds, such as `content`."""
    days = models.PositiveIntegerField()
    """0: for ever."""
    set_by = models.TextField()
    set_at = models.DateTimeField()

    class Meta:
        db_table = "retention_rule"

    def __str__(self) -> str:
        return f"{self.kind} {self.days}"
