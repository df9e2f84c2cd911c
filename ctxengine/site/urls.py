"""The addresses of the site: console at the root, REST under api/, the health check and the monitor's figures."""

from __future__ import annotations

from django.urls import include, path

from ctxengine.site.health import healthz, livez
from ctxengine.site.icon import icon
from ctxengine.site.prometheus import prometheus

urlpatterns = [
    path("livez", livez, name="livez"),
    path("healthz", healthz, name="healthz"),
    path("metrics", prometheus, name="prometheus"),
    path("favicon.ico", icon, name="favicon"),
    path("api/", include("api.urls")),
    path("", include("inspector.urls")),
]

handler400 = "ctxengine.site.refused.bad_request"
