"""Retention: what a tenant keeps for how long, and what takes it away when that time has passed."""

from __future__ import annotations
