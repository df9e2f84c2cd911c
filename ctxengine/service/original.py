"""What a foreign file says about the original call: its usage and its times."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ctxengine.engine.importers.transcript import Entry


def usage_of_original(entry: Entry) -> dict[str, Any]:
    """Usage as the file reports it; it belongs to the original request and teaches nothing (design 7.17)."""
    if entry.usage is None:
        return {}
    fresh, read, written = entry.usage.fresh, entry.usage.cache_read, entry.usage.cache_write
    return {
        "fresh": fresh,
        "cache_read": read,
        "cache_write_5m": written,
        "cache_write_1h": None,
        "output": entry.usage.output,
        "prompt_total": sum(value or 0 for value in (fresh, read, written)),
        "problems": [],
        "of_original": True,
    }


def iso_of(text: str | None) -> str | None:
    """A file's time in the one form that requests carry; None for anything that is not a time with offset."""
    moment = moment_of(text)
    return moment.isoformat() if moment is not None else None


def moment_of(text: str | None) -> datetime | None:
    """A file's time; None for anything that is not a time with offset."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
