"""What a replay assumed, in words, and what the same session came to under other assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxengine.ledger.models import ReplayCellRow, ReplayRow
from ctxengine.ledger.queries.replays import list_replays
from inspector.figures import NONE, number, percent

LIVES = {"5m": "5 minutes", "1h": "an hour"}
"""Lives of cache entries that can be asked for."""
_PAID_FOR = ("steps", "refused")
"""What two cells must have alike for their costs to be held against each other: a refused step costs nothing."""
REPLAYS_COMPARED = 12
"""Newest replays of a session that are looked at."""


@dataclass(frozen=True, slots=True)
class Rival:
    """One cell of another replay, held against the cell of the same engine and model here."""

    row: ReplayRow
    engine: str
    model: str
    conditions: str
    cost: str
    against: str
    """Its cost less ours, as a signed share of ours; a dash where a price is unknown, or other steps were paid for."""
    figures: Mapping[str, Any]


def conditions(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """What a replay's settings assume, one phrase each; none where all is the session's own."""
    found: list[str] = []
    if settings.get("ttl"):
        found.append(f"cache entries live {LIVES.get(settings['ttl'], settings['ttl'])}")
    if settings.get("turn_gap") is not None:
        found.append(f"{number(settings['turn_gap'])} s between turns")
    if settings.get("budget"):
        found.append(f"a budget of {number(settings['budget'])} tokens")
    if settings.get("low_water"):
        found.append(f"a cut leaves {100 * settings['low_water']:.0f} %")
    return tuple(found)


def conditions_in_words(settings: Mapping[str, Any]) -> str:
    """The same as one phrase."""
    return ", ".join(conditions(settings)) or "the session's own"


def rivals_of(row: ReplayRow, cells: Sequence[ReplayCellRow]) -> tuple[Rival, ...]:
    """Cells of the session's newest replays under other conditions, with an engine and model of these. Two queries."""
    here = {_name(cell): cell.figures for cell in cells if cell.figures.get("steps")}
    found = list_replays(row.tenant_id, session_id=row.session_id, size=REPLAYS_COMPARED)
    others = {other.id: other for other in found.rows if other.settings != row.settings}
    if not here or not others:
        return ()
    theirs = ReplayCellRow.objects.filter(tenant_id=row.tenant_id, replay_id__in=list(others))
    newest = {replay: place for place, replay in enumerate(others)}
    told: dict[tuple[str, ...], Rival] = {}
    for cell in sorted(theirs.defer("steps"), key=lambda one: (newest[one.replay_id], one.number)):
        ours = here.get(_name(cell))
        if ours is None or not cell.figures.get("steps"):
            continue
        other = others[cell.replay_id]
        words = conditions_in_words(other.settings)
        told.setdefault((*_name(cell), words), _rival(other, cell, words, ours))
    return tuple(told.values())


def _name(cell: ReplayCellRow) -> tuple[str, str, str]:
    return cell.engine, cell.provider, cell.model


def _rival(row: ReplayRow, cell: ReplayCellRow, words: str, ours: Mapping[str, Any]) -> Rival:
    cost, mine = cell.figures.get("cost"), ours.get("cost")
    alike = all(cell.figures.get(name) == ours.get(name) for name in _PAID_FOR)
    return Rival(
        row=row,
        engine=cell.engine,
        model=f"{cell.provider}/{cell.model}",
        conditions=words,
        cost=NONE if cost is None else f"${float(cost):,.4f}",
        against=percent(float(cost) / float(mine) - 1)
        if alike and cost is not None and mine
        else NONE,
        figures=cell.figures,
    )
