"""The addresses of the site: console at the root, REST under api/, and the health check."""

from __future__ import annotations

from django.urls import include, path

from ctxengine.site.health import healthz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("api/", include("api.urls")),
    path("", include("inspector.urls")),
]
