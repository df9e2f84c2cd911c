"""The body store: every byte of content, salted, erasable (design 4)."""

from __future__ import annotations

from django.db import models


class Body(models.Model):
    """Content bytes of one event. The event commits to sha256(salt + bytes); erasure blanks both."""

    pk = models.CompositePrimaryKey("tenant_id", "session_id", "id")
    tenant_id = models.UUIDField()
    session_id = models.UUIDField()
    id = models.UUIDField()
    salt = models.BinaryField(max_length=16)
    data = models.BinaryField()
    """UTF-8 with lone surrogates passed through, exactly as received."""
    sha256 = models.CharField(max_length=64)
    length = models.BigIntegerField()
    """Bytes."""
    owner = models.TextField(default="", blank=True)
    """Principal whose erasure takes this body along."""
    erased_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "body"
        indexes = [
            models.Index(fields=["tenant_id", "owner"], name="body_owner"),
            models.Index(fields=["tenant_id", "session_id", "sha256"], name="body_digest"),
            models.Index(
                fields=["tenant_id", "session_id"],
                name="body_erased",
                condition=models.Q(erased_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)
