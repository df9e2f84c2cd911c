"""The repair report of a transcript, for the command line and for pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ctxengine.engine.importers.transcript import ForeignSession, Repair, Transcript

_EXCERPT = 200


def report_lines(transcript: Transcript) -> Iterator[str]:
    """The report as text, one thing a line."""
    entries = sum(len(session.entries) for session in transcript.sessions)
    yield (
        f"{transcript.format}: {len(transcript.sessions)} session(s), {entries} entries, "
        f"{items_in(transcript)} item(s) found, {items_set_aside(transcript)} set aside"
    )
    yield from _counts(all_repairs(transcript), "  ")
    yield from _lines(transcript.repairs, "  ")
    for session in transcript.sessions:
        if session.repairs:
            yield f"  session {session.key} ({session.title})"
            yield from _lines(session.repairs, "    ")


def as_json(transcript: Transcript) -> dict[str, Any]:
    """The report as plain values: totals, counts per action and code, and every line with its place."""
    return {
        "format": transcript.format,
        "items_in": items_in(transcript),
        "items_set_aside": items_set_aside(transcript),
        "counts": _count_rows(all_repairs(transcript)),
        "repairs": [_as_row(repair) for repair in transcript.repairs],
        "sessions": [_session(session) for session in transcript.sessions],
    }


def all_repairs(transcript: Transcript) -> list[Repair]:
    """Lines of the file and of all its sessions."""
    return [
        *transcript.repairs,
        *(repair for session in transcript.sessions for repair in session.repairs),
    ]


def items_in(transcript: Transcript) -> int:
    """Items found in the file."""
    return transcript.items_in + sum(session.items_in for session in transcript.sessions)


def items_set_aside(transcript: Transcript) -> int:
    """Items of the file that did not become entries; each stands in the report."""
    return sum(repair.items for repair in all_repairs(transcript))


def _session(session: ForeignSession) -> dict[str, Any]:
    return {
        "key": session.key,
        "title": session.title,
        "model": session.model,
        "entries": len(session.entries),
        "synthetic": sum(entry.synthetic for entry in session.entries),
        "items_in": session.items_in,
        "items_set_aside": sum(repair.items for repair in session.repairs),
        "parent": session.parent[0] if session.parent else None,
        "counts": _count_rows(session.repairs),
        "repairs": [_as_row(repair) for repair in session.repairs],
    }


def _count_rows(repairs: list[Repair]) -> list[dict[str, Any]]:
    times = Counter((repair.action, repair.code) for repair in repairs)
    items: Counter[tuple[str, str]] = Counter()
    for repair in repairs:
        items[repair.action, repair.code] += repair.items
    return [
        {"action": str(action), "code": code, "lines": count, "items": items[action, code]}
        for (action, code), count in sorted(times.items())
    ]


def _counts(repairs: list[Repair], indent: str) -> Iterator[str]:
    for row in _count_rows(repairs):
        counted = f", {row['items']} item(s)" if row["items"] else ""
        yield f"{indent}{row['action']} {row['code']}: {row['lines']} line(s){counted}"


def _as_row(repair: Repair) -> dict[str, Any]:
    row: dict[str, Any] = {
        "action": str(repair.action),
        "code": repair.code,
        "where": repair.where,
        "detail": repair.detail,
        "items": repair.items,
    }
    if repair.raw:
        row["raw"] = repair.raw
    return row


def _lines(repairs: list[Repair], indent: str) -> Iterator[str]:
    for repair in repairs:
        counted = f" [{repair.items} item(s)]" if repair.items else ""
        yield f"{indent}{repair.action} {repair.code}, {repair.where}: {repair.detail}{counted}"
        if repair.raw:
            shown = repair.raw[:_EXCERPT] + ("…" if len(repair.raw) > _EXCERPT else "")
            yield f"{indent}  {shown!r}"
