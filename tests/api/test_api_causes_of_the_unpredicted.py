"""What nobody predicted is no loss: neither counted under its cause nor listed behind that count."""

from __future__ import annotations

from uuid import UUID

from ctxengine.engine.capacity.profile import CacheBehaviour
from ctxengine.ledger.queries.requests import RequestFilter, narrowed_requests
from tests.api.door import Door
from tests.api.test_api_implicit_cache import PrefixServer, Talk, seen


def test_losses_by_cause_hold_nothing_that_was_not_predicted(door: Door, tenant: UUID) -> None:
    seen(tenant, CacheBehaviour.REPORTED)
    server = PrefixServer()
    Talk(door, server).turn("How warm is it?")
    second = Talk(door, server)
    verdicts = [second.turn("How warm is it there?")["verdict"]]
    second.pause(3_000)
    verdicts.append(second.turn("And in Bergen?")["verdict"])
    assert [(one["class"], one["cause"]) for one in verdicts] == [
        ("unpredicted", "first_request"),
        ("unpredicted", "life_not_known"),
    ]
    told = door.get("metrics").ok()
    (misses,) = [part["misses"] for part in told.values() if "misses" in (part or ())]
    assert [(one["cause"], one["requests"]) for one in misses] == [("first_request", 1)]
    for where, many in (
        (RequestFilter(cause="first_request"), 1),
        (RequestFilter(cause="life_not_known"), 0),
        (RequestFilter(cause="life_not_known", verdict="unpredicted"), 1),
    ):
        assert narrowed_requests(tenant, where).count() == many
