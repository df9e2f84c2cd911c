"""How numbers, trust, times and hostile text are written in templates."""

from __future__ import annotations
