"""Reads for the console: one module per page, typed results, the tenant always first (style 2.8)."""

from __future__ import annotations
