"""The markers of a step: put within reach of what earlier requests left, and found again when it is handed out anew."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ctxengine.engine.build import remarked
from ctxengine.engine.cache.reach import INTERMEDIATE, may_be_out_of_reach, within_reach
from ctxengine.engine.cache.rules import cache_rules
from ctxengine.engine.cache.trail import Trail
from ctxengine.engine.request import ModelRequest
from ctxengine.engine.wire.base import Marker
from ctxengine.service.left_before import LeftBefore


def reaching(left: LeftBefore, built: ModelRequest, trail: Trail, at: datetime) -> ModelRequest:
    """A request about to be recorded, with an intermediate marker where it needs one."""
    rules = cache_rules(built.renderer.api, built.plan.provider, built.plan.model)
    if not may_be_out_of_reach(built, rules):
        return built
    entries = left.answered.entries if left.answered is not None else ()
    return remarked(built, within_reach(built, trail, entries, rules=rules, now=at.timestamp()))


def as_recorded(built: ModelRequest, cache: dict[str, Any]) -> ModelRequest:
    """A rebuilt request under the markers it was handed out with.

    Where reasoning is gone since, places have moved; then the markers stay where a new build puts them.
    """
    marks = [
        Marker(entry["name"], entry["after_fragment"], entry["ttl"])
        for entry in cache.get("markers", ())
    ]
    placed = {(marker.name, marker.after_fragment) for marker in built.markers}
    kept = {(m.name, m.after_fragment) for m in marks if m.name != INTERMEDIATE}
    return remarked(built, marks) if marks and kept <= placed else built
