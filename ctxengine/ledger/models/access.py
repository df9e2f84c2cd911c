"""Who may do what: tenants, members, API keys, idempotency rows (design 5)."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models


class Role(models.TextChoices):
    """Console roles, each including the one before."""

    VIEWER = "viewer", "viewer"
    OPERATOR = "operator", "operator"
    ADMIN = "admin", "admin"


class Scope(models.TextChoices):
    """What an API key may do."""

    RUNTIME = "runtime", "runtime"
    READ = "read", "read"
    OPERATE = "operate", "operate"


class Tenant(models.Model):
    """An organisation; the unit of isolation and of distribution."""

    id = models.UUIDField(primary_key=True)
    slug = models.SlugField(max_length=63, unique=True)
    name = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenant"

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """A person's role in a tenant."""

    pk = models.CompositePrimaryKey("tenant_id", "user_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    role = models.CharField(max_length=16, choices=Role.choices)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "membership"

    def __str__(self) -> str:
        return f"{self.user_id} {self.role}"


class ApiKey(models.Model):
    """A hashed key of a tenant. The key itself is shown once and never stored."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    id = models.UUIDField()
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    name = models.TextField()
    prefix = models.CharField(max_length=12, unique=True)
    key_sha256 = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope.choices))
    created_by = models.TextField(default="", blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "api_key"

    def __str__(self) -> str:
        return f"{self.prefix} {self.name}"


class Idempotency(models.Model):
    """What a write answered, so that its repeat answers the same; kept 24 hours."""

    pk = models.CompositePrimaryKey("tenant_id", "key")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    key = models.CharField(max_length=255)
    operation = models.CharField(max_length=128)
    body_sha256 = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    """HTTP status answered; null while the first call is still at work."""
    resource = models.JSONField(default=dict)
    """Ids from which the answer is rebuilt."""
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "idempotency"

    def __str__(self) -> str:
        return f"{self.operation} {self.key}"
