"""The session row: the lock, the heads and the running sums (design 4)."""

from __future__ import annotations

from django.db import models


class SessionRow(models.Model):
    """A conversation of one agent with one principal under one engine."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    title = models.TextField(default="", blank=True)
    engine = models.CharField(max_length=16)
    provider = models.CharField(max_length=48)
    model = models.TextField()
    agent_name = models.TextField()
    agent_version = models.TextField()
    principal = models.TextField(default="", blank=True)
    occasion = models.CharField(max_length=16, default="interactive")
    parent_run_id = models.UUIDField(null=True, blank=True)
    import_sha256 = models.CharField(max_length=64, default="", blank=True)
    """Digest of the imported file; empty for live sessions."""
    import_format = models.CharField(max_length=32, default="", blank=True)
    state = models.CharField(max_length=16, default="open")
    """`open` or `ended`."""
    nonce_key = models.BinaryField()
    """Encrypted."""
    settings = models.JSONField(default=dict)
    """Environment, surface and other optional fields given at open."""
    counter = models.CharField(max_length=96)
    """Counter version and family that the sums below were made with."""
    last_sequence = models.BigIntegerField(default=0)
    last_hash = models.CharField(max_length=64, default="")
    content_sequence = models.BigIntegerField(default=0)
    act_sequence = models.BigIntegerField(default=0)
    epoch = models.IntegerField(default=1)
    items = models.BigIntegerField(default=0)
    units = models.BigIntegerField(default=0)
    runs = models.IntegerField(default=0)
    requests = models.IntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    pointer_tokens = models.BigIntegerField(default=0)
    result_tokens = models.BigIntegerField(default=0)
    turns = models.BigIntegerField(default=0)
    """User messages so far."""
    peak_tokens = models.IntegerField(default=0)
    """Largest request so far."""
    pressure_count = models.IntegerField(default=0)
    created_at = models.DateTimeField()
    active_at = models.DateTimeField()

    class Meta:
        db_table = "session"
        indexes = [models.Index(fields=["tenant_id", "-active_at", "id"], name="session_recent")]

    def __str__(self) -> str:
        return self.title or str(self.id)
