"""The rules of axe that every page meets."""

from __future__ import annotations

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
