"""The site as a Django app: it brings the `up` command."""

from __future__ import annotations

from django.apps import AppConfig

from ctxengine.service.turns.embedder import configured_embedder
from ctxengine.site.tracing import start_tracing


class SiteConfig(AppConfig):
    """Registers the site's management commands, and starts tracing where it is asked for."""

    name = "ctxengine.site"
    label = "ctx_site"

    def ready(self) -> None:
        """Begin to send spans, if an address is set.

        Raises:
            ImproperlyConfigured: the embedder that the settings name cannot be made.
        """
        start_tracing()
        configured_embedder()
