"""What the console keeps for the people who use it: the search index, saved views, alert rules and what they found."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models


class SearchEntry(models.Model):
    """One item's text, masked, as it can be searched. Derived from a body, and erased with it."""

    pk = models.CompositePrimaryKey("tenant_id", "session_id", "sequence", "ordinal")
    tenant_id = models.UUIDField()
    session_id = models.UUIDField()
    sequence = models.BigIntegerField()
    ordinal = models.IntegerField()
    id = models.UUIDField()
    """Tells entries of one moment apart, for cursors."""
    kind = models.CharField(max_length=24)
    role = models.CharField(max_length=12)
    """Who said it: `user`, `assistant`, `tool`, `summary` or `memory`."""
    row = models.SmallIntegerField()
    """The row of a request in which such items stand."""
    trust = models.CharField(max_length=32)
    name = models.TextField(default="", blank=True)
    """Tool name of calls and results."""
    text = models.TextField(default="", blank=True)
    """Secrets masked, in model view; long ones are cut."""
    cut = models.BooleanField(default=False)
    """Whether the item is longer than what is searched."""
    document = SearchVectorField()
    """The words, and one that names the tenant: the index is asked for both."""
    at = models.DateTimeField()

    class Meta:
        db_table = "search_entry"
        indexes = [
            GinIndex(fields=["document"], name="search_words"),
            models.Index(fields=["tenant_id", "-at", "-id"], name="search_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.sequence}.{self.ordinal} {self.kind}"


class SearchHash(models.Model):
    """The beginning of an event's hash or of an item's digest, so that a pasted one is found. Derived, like the entries."""

    pk = models.CompositePrimaryKey("tenant_id", "start", "session_id", "sequence", "ordinal")
    tenant_id = models.UUIDField()
    start = models.BigIntegerField()
    """Its first 15 hex digits as a number."""
    session_id = models.UUIDField()
    sequence = models.BigIntegerField()
    ordinal = models.IntegerField()
    """The item's; -1 for the hash of the event itself."""

    class Meta:
        db_table = "search_hash"

    def __str__(self) -> str:
        return f"{self.sequence} {self.start:015x}"


class SearchHead(models.Model):
    """How far a session's events are indexed."""

    pk = models.CompositePrimaryKey("tenant_id", "session_id")
    tenant_id = models.UUIDField()
    session_id = models.UUIDField()
    through = models.BigIntegerField()
    """Sequence of the last event that was looked at."""

    class Meta:
        db_table = "search_head"

    def __str__(self) -> str:
        return f"{self.session_id} {self.through}"


class SavedView(models.Model):
    """A list with its filters under a name."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    page = models.CharField(max_length=16)
    """`sessions`, `requests` or `search`."""
    name = models.CharField(max_length=80)
    query = models.TextField(default="", blank=True)
    """The query string of the list's address."""
    owner = models.TextField()
    """Name of the person who saved it."""
    shared = models.BooleanField(default=False)
    """Whether the whole tenant sees it."""
    created_at = models.DateTimeField()

    class Meta:
        db_table = "saved_view"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "owner", "page", "name"], name="saved_view_name"
            )
        ]

    def __str__(self) -> str:
        return self.name


class AlertRule(models.Model):
    """A figure that is looked at regularly, and the bound that must not be passed."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    name = models.CharField(max_length=80)
    measure = models.CharField(max_length=40)
    """A name of the table of measures."""
    bound = models.FloatField()
    window_minutes = models.IntegerField()
    webhook = models.TextField(default="", blank=True)
    """Address that is told; empty where nobody is."""
    enabled = models.BooleanField(default=True)
    state = models.CharField(max_length=8, default="quiet")
    """`quiet` or `firing`."""
    value = models.FloatField(null=True, blank=True)
    """Found at the last look; null where there was nothing to measure."""
    looked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "alert_rule"
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "name"], name="alert_rule_name")
        ]

    def __str__(self) -> str:
        return self.name


class AlertChange(models.Model):
    """A rule began to fire, or fell quiet again; and what became of telling so."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant_id = models.UUIDField()
    id = models.UUIDField()
    rule_id = models.UUIDField()
    rule_name = models.CharField(max_length=80)
    state = models.CharField(max_length=8)
    value = models.FloatField(null=True, blank=True)
    bound = models.FloatField()
    at = models.DateTimeField()
    told = models.CharField(max_length=16, default="nobody")
    """`nobody`, `waiting`, `delivered` or `failed`."""
    detail = models.TextField(default="", blank=True)
    """Status or reason of the last attempt to tell."""

    class Meta:
        db_table = "alert_change"
        indexes = [models.Index(fields=["tenant_id", "-at"], name="alert_recent")]

    def __str__(self) -> str:
        return f"{self.rule_name} {self.state}"
