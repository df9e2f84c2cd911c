"""Why nothing can be taken from a file."""

from __future__ import annotations


class Unreadable(Exception):
    """Nothing can be taken from the file, and why."""
