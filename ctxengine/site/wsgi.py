"""The WSGI entry point. A web process keeps a pool of database connections; commands do not."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from ctxengine.site import keys, places

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
os.environ.setdefault("CTX_DB_POOL", "16")
keys.ensure(places.data_folder())

application = get_wsgi_application()
