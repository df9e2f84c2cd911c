"""The console: server-rendered pages that explain sessions and requests (design 9)."""

from __future__ import annotations
