"""Persona documents and memory: what a principal says about themselves, and what they can be reminded of."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models import GeneratedField, Value

SEARCH_CONFIG = "simple"
"""Text search without a language: words as they are, in any script that has blanks between words."""


class PersonaRevision(models.Model):
    """One revision of a principal's persona. Revisions are only added (frozen-prefix spec, The persona row)."""

    pk = models.CompositePrimaryKey("tenant_id", "principal", "revision")
    tenant_id = models.UUIDField()
    principal = models.CharField(max_length=200)
    revision = models.IntegerField()
    """From 1, without gaps."""
    entries = models.TextField()
    """A JSON array of texts in ASCII, so that it can hold any character."""
    tokens = models.IntegerField()
    """What the rendered row takes by the conservative counter."""
    note = models.TextField(default="", blank=True)
    saved_by = models.TextField(default="", blank=True)
    saved_at = models.DateTimeField()

    class Meta:
        db_table = "persona_revision"

    def __str__(self) -> str:
        return f"{self.principal} r{self.revision}"


class SnapshotTrace(models.Model):
    """The recall behind a session's memory snapshot. When it is gone, plans that carry it are invalid (spec, Events)."""

    pk = models.CompositePrimaryKey("tenant_id", "session_id", "trace")
    tenant_id = models.UUIDField()
    session_id = models.UUIDField()
    trace = models.TextField()
    principal = models.TextField(default="", blank=True)
    registered_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "snapshot_trace"
        indexes = [models.Index(fields=["tenant_id", "principal"], name="trace_by_principal")]

    def __str__(self) -> str:
        return self.trace


class ClosedTurn(models.Model):
    """A closed turn as the embedded memory source reads it: derived, and gone with the bodies it quotes."""

    pk = models.CompositePrimaryKey("tenant_id", "run_id")
    tenant_id = models.UUIDField()
    run_id = models.UUIDField()
    session_id = models.UUIDField()
    principal = models.TextField()
    sequence = models.BigIntegerField()
    """Event of the question."""
    asked = models.TextField()
    answered = models.TextField(default="", blank=True)
    closed_at = models.DateTimeField()
    words = GeneratedField(
        expression=SearchVector("asked", "answered", config=Value(SEARCH_CONFIG)),
        output_field=SearchVectorField(),
        db_persist=True,
    )

    class Meta:
        db_table = "closed_turn"
        indexes = [
            models.Index(fields=["tenant_id", "principal", "-closed_at"], name="turn_by_principal"),
            models.Index(fields=["tenant_id", "session_id"], name="turn_by_session"),
            GinIndex(fields=["words"], name="turn_words"),
        ]

    def __str__(self) -> str:
        return f"turn {self.run_id}"
