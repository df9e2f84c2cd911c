"""The one table of what can be given a keeping time: what goes, what stays, the least and the default."""

from __future__ import annotations

from typing import NamedTuple

FOR_EVER = 0
"""Days of what is kept for ever."""
MOST_DAYS = 36_500


class RetentionKind(NamedTuple):
    """One kind of what is stored."""

    name: str
    title: str
    counts_from: str
    """The moment from which its days are counted."""
    goes: str
    """What is taken away, in words for people."""
    stays: str
    """What is left, and what can still be done with it."""
    counted: str
    """What one of them is called, in the plural."""
    default_days: int = FOR_EVER
    least_days: int = 1
    """What looks back at it needs so much."""


KINDS: tuple[RetentionKind, ...] = (
    RetentionKind(
        "content", "Content of sessions", "the session's last activity, or its import where that came later",
        "every body of the session: messages, results, summaries, cards, memory; its previews, search rows and title; "
        "texts that its file's repair set aside",
        "events, hashes, token counts, requests and figures: the chain verifies, what was sent is still proven",
        "sessions",
    ),
    RetentionKind(
        "manifests", "Item lists of requests", "the request, or its session's import where that came later",
        "the item-by-item list of what stood in a request and why, of runs that have ended",
        "the totals of its rows and classes, yields, inputs, hashes, usage and cost: it is still rebuilt and proven",
        "requests", least_days=7,
    ),
    RetentionKind(
        "search", "Search rows", "the item",
        "the searchable text of old items",
        "the items themselves, found through their session, their id or their hash",
        "items",
    ),
    RetentionKind(
        "replays", "Replays of the lab", "asking for the replay",
        "the replay with every cell and step of it",
        "the session that was replayed",
        "replays",
    ),
    RetentionKind(
        "jobs", "Ended jobs", "the job's end",
        "the row with its log, arguments and result",
        "what the job made, and the audit lines of who asked",
        "jobs", default_days=30,
    ),
    RetentionKind(
        "records", "Records of our own calls, refused opens and alerts", "the record",
        "what our own calls to providers cost, which opens were refused, when alerts fired",
        "sums that pages show of the time since",
        "records", least_days=31,
    ),
)  # fmt: skip
"""Never in this table: events and the audit log, which are append-only, and answers to repeated writes (24 hours by contract).
Exports are made while they are read and are stored nowhere."""

BY_NAME = {kind.name: kind for kind in KINDS}
