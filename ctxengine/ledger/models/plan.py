"""Plans: the pinned region A of a session, one row per epoch (design 2, 6)."""

from __future__ import annotations

from django.db import models
from django.db.models import Value


class PlanRow(models.Model):
    """What a session pinned. The texts are a body, so that they can be erased and hold any byte."""

    pk = models.CompositePrimaryKey("tenant_id", "session_id", "epoch")
    tenant_id = models.UUIDField()
    session_id = models.UUIDField()
    epoch = models.IntegerField()
    sequence = models.BigIntegerField()
    """Event that created or rotated it."""
    reasons = models.JSONField(default=list)
    """Why this epoch began: codes of `plan.epochs.EpochReason`; empty for the first."""
    provider = models.CharField(max_length=48)
    model = models.TextField()
    body_id = models.UUIDField()
    redacted_body_id = models.UUIDField(null=True, blank=True)
    """Once a person's content was erased: the body of the plan without it, so that requests can still be proven."""
    prefix_sha256 = models.CharField(max_length=64)
    wire_prefix_sha256 = models.CharField(max_length=64)
    prefix_tokens = models.IntegerField()
    tokens_by_class = models.JSONField()
    """{class: {"tokens", "cap", "items", "item_cap", "source"}}; source: counted, estimated or measured."""
    policy = models.JSONField()
    builder_version = models.CharField(max_length=48)
    framing_version = models.CharField(max_length=48)
    renderer = models.CharField(max_length=48)
    counter = models.CharField(max_length=96)
    warnings = models.JSONField(default=list)
    cost_model = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    """Dated prices of the model, pinned with the plan, in US dollars per million tokens; empty where unknown."""
    measured = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    """What the provider's counting endpoint said of the prefix, once a job has asked; empty until then."""
    created_at = models.DateTimeField()

    class Meta:
        db_table = "plan"

    def __str__(self) -> str:
        return f"epoch {self.epoch}"
