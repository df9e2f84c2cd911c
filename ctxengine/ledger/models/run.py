"""Runs (turns) and their checkpoints (design 2, 4)."""

from __future__ import annotations

from django.db import models


class RunRow(models.Model):
    """One turn: from a user message to a final answer. At most one per session is open."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    session_id = models.UUIDField()
    number = models.IntegerField()
    """Place in the session, from 1."""
    seed_event_sequence = models.BigIntegerField(null=True)
    """Sequence of the message it answers; history is every item strictly below. Null for child runs."""
    state = models.CharField(max_length=16, default="open")
    """`open`, `parked` or `ended`."""
    outcome = models.CharField(max_length=24, default="", blank=True)
    """`completed`, `failed`, `interrupted` or `cancelled`, once ended."""
    settings = models.JSONField(default=dict)
    """Scopes, surface, timezone, `now` as given when the run started."""
    steps = models.IntegerField(default=0)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "run"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "session_id", "number"], name="run_number_once"
            ),
            models.UniqueConstraint(
                fields=["tenant_id", "session_id"],
                condition=~models.Q(state="ended"),
                name="run_one_open",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.number}"


class Checkpoint(models.Model):
    """A run's resumable state that no event may hold: encrypted reasoning. Dispensable (design 4)."""

    pk = models.CompositePrimaryKey("tenant_id", "run_id")
    tenant_id = models.UUIDField()
    run_id = models.UUIDField()
    session_id = models.UUIDField()
    revision = models.IntegerField(default=0)
    head_sequence = models.BigIntegerField()
    opaque = models.BinaryField(null=True)
    """Encrypted; never shown, logged or summarised."""
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "checkpoint"

    def __str__(self) -> str:
        return f"checkpoint of {self.run_id}"
