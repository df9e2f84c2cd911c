"""Agent loops that drive the engine over REST: copy them as the reference integration."""

from __future__ import annotations
