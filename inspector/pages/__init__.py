"""One module per page of the console."""

from __future__ import annotations
