"""The console as a Django app: it brings pages and template tags, no tables."""

from __future__ import annotations

from django.apps import AppConfig


class InspectorConfig(AppConfig):
    """Registers the console."""

    name = "inspector"
    label = "inspector"
