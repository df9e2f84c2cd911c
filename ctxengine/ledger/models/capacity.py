"""Capacity profiles: what was measured of each model, one row per probe or revision (capacity spec 1)."""

from __future__ import annotations

from django.db import models


class CapacityRow(models.Model):
    """One revision of a model's capacity profile. Rows are only added; the newest counts."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    provider = models.CharField(max_length=48)
    model = models.CharField(max_length=200)
    source = models.CharField(max_length=16)
    """`probe` or `feedback`."""
    profile = models.JSONField()
    """See `engine.capacity.profile.CapacityProfile`."""
    job_id = models.UUIDField(null=True, blank=True)
    """The job that probed; null for the command line and for feedback."""
    session_id = models.UUIDField(null=True, blank=True)
    """The session whose prefix the probe was made with, where one was named."""
    created_at = models.DateTimeField()

    class Meta:
        db_table = "capacity_profile"
        indexes = [
            models.Index(
                fields=["tenant_id", "provider", "model", "-created_at"], name="capacity_newest"
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"
