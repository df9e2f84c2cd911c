"""Django app of the ledger."""

from __future__ import annotations

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """Registers the ledger's models under the label `ledger`."""

    name = "ctxengine.ledger"
    label = "ledger"
    default_auto_field = "django.db.models.BigAutoField"
