"""Rules about a tenant's figures: looked at regularly, kept when they change, told to an address that the operator allows."""

from __future__ import annotations
