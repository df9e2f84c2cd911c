"""The site as a Django app: it brings the `up` command."""

from __future__ import annotations

from django.apps import AppConfig


class SiteConfig(AppConfig):
    """Registers the site's management commands."""

    name = "ctxengine.site"
    label = "ctx_site"
