"""Versioned configuration and measured factors."""

from __future__ import annotations

from django.db import models


class AgentVersion(models.Model):
    """An agent's pinned specification. (tenant, name, version) never changes (design 5)."""

    pk = models.CompositePrimaryKey("tenant_id", "name", "version")
    tenant_id = models.UUIDField()
    name = models.CharField(max_length=200)
    version = models.CharField(max_length=100)
    spec = models.BinaryField()
    """Canonical JSON of the specification."""
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "agent_version"

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class Calibration(models.Model):
    """The estimator's correction factor of one model, as learnt from reported usage."""

    pk = models.CompositePrimaryKey("tenant_id", "provider", "model")
    tenant_id = models.UUIDField()
    provider = models.CharField(max_length=48)
    model = models.CharField(max_length=200)
    factor_millionths = models.IntegerField(default=1_000_000)
    samples = models.IntegerField(default=0)
    last_error_millionths = models.IntegerField(default=0)
    """Signed error of the latest estimate, positive when it was too low."""
    accepted_max = models.IntegerField(null=True)
    rejected_min = models.IntegerField(null=True)
    verified_window = models.IntegerField(null=True)
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "calibration"

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"
