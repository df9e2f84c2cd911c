"""What closed turns are found by: derived from their events, and gone with what they quote (capacity spec 4 and 10)."""

from __future__ import annotations

from django.db import models


class IndexedTurn(models.Model):
    """One closed turn that the index holds."""

    pk = models.CompositePrimaryKey("tenant_id", "session_id", "number")
    tenant_id = models.UUIDField()
    session_id = models.UUIDField()
    number = models.IntegerField()
    """Place among the session's turns, from 1."""
    length = models.IntegerField()
    """Terms it holds, counted as often as they occur."""
    embedding = models.BinaryField(default=b"")
    """Packed vector of its card; empty where no embedder was asked."""
    embedder = models.CharField(max_length=128, default="", blank=True)
    """Version of the embedder that made it."""

    class Meta:
        db_table = "indexed_turn"

    def __str__(self) -> str:
        return f"turn {self.number} of {self.session_id}"


class Posting(models.Model):
    """One term of one closed turn."""

    pk = models.CompositePrimaryKey("tenant_id", "session_id", "term", "number")
    tenant_id = models.UUIDField()
    session_id = models.UUIDField()
    term = models.CharField(max_length=64)
    number = models.IntegerField()
    count = models.IntegerField()

    class Meta:
        db_table = "posting"

    def __str__(self) -> str:
        return f"{self.term} in turn {self.number}"
