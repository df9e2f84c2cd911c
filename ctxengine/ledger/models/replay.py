"""Replays of the lab: what was asked for, and one row for each cell of the matrix as it finishes (design 8)."""

from __future__ import annotations

from django.db import models


class ReplayRow(models.Model):
    """One replay of a session under several engines and models."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    session_id = models.UUIDField()
    title = models.TextField(default="", blank=True)
    """The session's title when it was asked for."""
    engines = models.JSONField(default=list)
    targets = models.JSONField(default=list)
    """Models, as `provider/name`."""
    settings = models.JSONField(default=dict)
    """Budget, life, gap and low-water mark; see `service.replay.wanted.ReplaySettings`."""
    job_id = models.UUIDField(null=True, blank=True)
    asked_by = models.TextField(default="", blank=True)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "replay"
        indexes = [models.Index(fields=["tenant_id", "-created_at", "id"], name="replay_recent")]

    def __str__(self) -> str:
        return self.title or str(self.id)


class ReplayCellRow(models.Model):
    """One engine on one model: totals and every step. Figures only, never content."""

    pk = models.CompositePrimaryKey("tenant_id", "replay_id", "number")
    tenant_id = models.UUIDField()
    replay_id = models.UUIDField()
    number = models.IntegerField()
    """Place in the matrix, model by model, from 1."""
    engine = models.CharField(max_length=48)
    provider = models.CharField(max_length=48)
    model = models.CharField(max_length=200)
    figures = models.JSONField(default=dict)
    steps = models.JSONField(default=list)
    notes = models.JSONField(default=list)
    skipped = models.TextField(default="", blank=True)
    """Why nothing was replayed; empty where something was."""
    finished_at = models.DateTimeField()

    class Meta:
        db_table = "replay_cell"

    def __str__(self) -> str:
        return f"{self.engine} {self.provider}/{self.model}"
