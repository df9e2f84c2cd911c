"""Rows derived from events at append: items, units with running sums, ready renderings (design 4)."""

from __future__ import annotations

from django.db import models


class ItemRow(models.Model):
    """One item's facts. Its content stays in the event's body."""

    pk = models.CompositePrimaryKey("tenant_id", "session_id", "sequence", "ordinal")
    tenant_id = models.UUIDField()
    session_id = models.UUIDField()
    sequence = models.BigIntegerField()
    ordinal = models.IntegerField()
    unit_sequence = models.BigIntegerField()
    kind = models.CharField(max_length=24)
    trust = models.CharField(max_length=32)
    run_id = models.UUIDField(null=True)
    name = models.TextField(default="", blank=True)
    call_id = models.TextField(default="", blank=True)
    """As received (model view)."""
    wire_call_id = models.CharField(max_length=64, default="", blank=True)
    source = models.TextField(default="", blank=True)
    is_error = models.BooleanField(default=False)
    tokens = models.IntegerField()
    pointer_tokens = models.IntegerField()
    bytes_len = models.BigIntegerField(default=0)
    chars_len = models.BigIntegerField(default=0)
    digest = models.CharField(max_length=64)
    preview = models.TextField(default="", blank=True)
    """First 200 characters in model view, for lists."""
    excerpt_limit = models.IntegerField(default=0, db_default=0)
    """Limit (bytes) under which a large result is counted and shown as an excerpt; 0: whole."""

    class Meta:
        db_table = "item"
        indexes = [
            models.Index(
                fields=["tenant_id", "session_id", "unit_sequence", "sequence", "ordinal"],
                name="item_by_unit",
            ),
            models.Index(fields=["tenant_id", "session_id", "wire_call_id"], name="item_by_call"),
        ]

    def __str__(self) -> str:
        return f"{self.sequence}.{self.ordinal} {self.kind}"


class UnitRow(models.Model):
    """One unit with the sums of everything before it, so that a cut is one indexed lookup."""

    pk = models.CompositePrimaryKey("tenant_id", "session_id", "sequence")
    tenant_id = models.UUIDField()
    session_id = models.UUIDField()
    sequence = models.BigIntegerField()
    index = models.BigIntegerField()
    """Place in the session, from 0."""
    last_sequence = models.BigIntegerField()
    run_id = models.UUIDField(null=True)
    kind = models.CharField(max_length=24)
    """`user`, `input`, `step`, `answer` or `summary`."""
    open_calls = models.IntegerField(default=0)
    tokens = models.IntegerField()
    pointer_tokens = models.IntegerField()
    result_tokens = models.IntegerField(default=0)
    before_tokens = models.BigIntegerField()
    """Sum of `tokens` over all earlier units."""
    before_pointer_tokens = models.BigIntegerField()
    before_result_tokens = models.BigIntegerField()
    before_turns = models.BigIntegerField(default=0)
    """User messages before this unit."""
    before_saved_tokens = models.BigIntegerField()
    """before_tokens minus before_pointer_tokens: what a pointer floor here would save. Never falls."""

    class Meta:
        db_table = "unit"
        indexes = [
            models.Index(fields=["tenant_id", "session_id", "before_tokens"], name="unit_tokens"),
            models.Index(
                fields=["tenant_id", "session_id", "before_pointer_tokens"], name="unit_pointer"
            ),
            models.Index(
                fields=["tenant_id", "session_id", "before_result_tokens"], name="unit_results"
            ),
            models.Index(
                fields=["tenant_id", "session_id", "before_saved_tokens"], name="unit_saved"
            ),
            models.Index(
                fields=["tenant_id", "session_id", "sequence"],
                name="unit_open",
                condition=models.Q(open_calls__gt=0),
            ),
        ]

    def __str__(self) -> str:
        return f"unit {self.sequence}"


class Rendering(models.Model):
    """A unit's rendered fragments for one renderer and form: the digest for ever, the bytes as a cache."""

    pk = models.CompositePrimaryKey("tenant_id", "session_id", "unit_sequence", "renderer", "form")
    tenant_id = models.UUIDField()
    session_id = models.UUIDField()
    unit_sequence = models.BigIntegerField()
    renderer = models.CharField(max_length=48)
    """API and renderer version, e.g. `anthropic@1`."""
    form = models.CharField(max_length=16)
    """`whole` or `pointer`."""
    digest = models.CharField(max_length=64)
    data = models.BinaryField(null=True)
    """Packed fragments; null after an erasure."""

    class Meta:
        db_table = "rendering"

    def __str__(self) -> str:
        return f"{self.unit_sequence} {self.renderer} {self.form}"
