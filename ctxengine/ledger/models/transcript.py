"""Imported files and their repair reports (design 8)."""

from __future__ import annotations

from django.db import models


class ImportRow(models.Model):
    """One imported file, known by its content."""

    pk = models.CompositePrimaryKey("tenant_id", "sha256")
    tenant_id = models.UUIDField()
    sha256 = models.CharField(max_length=64)
    name = models.TextField()
    format = models.CharField(max_length=32)
    sessions = models.JSONField(default=list)
    """Session ids."""
    items_in = models.IntegerField()
    items_kept = models.IntegerField()
    report = models.JSONField(default=list)
    """Repair lines."""
    created_at = models.DateTimeField()

    class Meta:
        db_table = "import"

    def __str__(self) -> str:
        return self.name
