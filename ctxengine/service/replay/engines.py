"""The engines and policies that the lab can run: one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ctxengine.engine.history.peers.policies import PEERS, PeerPolicy
from ctxengine.service.replay.boundary import BoundaryDriver
from ctxengine.service.replay.drivers import EngineDriver, SuffixDriver
from ctxengine.service.replay.installed_peers import installed_peers
from ctxengine.service.replay.working_set import WorkingSetDriver
from ctxengine.service.specs import ServiceError


class LabEngine(NamedTuple):
    """One line of the table: an engine of ours or a peer policy."""

    name: str
    words: str
    driver: Callable[[], EngineDriver] | None = None
    peer: Callable[[], PeerPolicy] | None = None


_OWN = (
    LabEngine(
        "suffix",
        "our frozen prefix with the largest tail that fits; what a cut drops is summarised from the ledger",
        driver=SuffixDriver,
    ),
    LabEngine(
        "working_set",
        "whole closed turns, each full, as a card or in a packet, planned at the start of each run",
        driver=WorkingSetDriver,
    ),
    LabEngine(
        "boundary",
        "everything whole until the trigger, then a note for what is settled; the embedded summariser writes it here",
        driver=BoundaryDriver,
    ),
)

LAB_ENGINES: Mapping[str, LabEngine] = {
    engine.name: engine
    for engine in (
        *_OWN,
        *(
            LabEngine(name, make().words, peer=make)
            for name, make in {**PEERS, **installed_peers()}.items()
        ),
    )
}
"""By name: ours, then peers by their documentation, then the peer libraries that are installed here."""

OWN_ENGINES = tuple(engine.name for engine in LAB_ENGINES.values() if engine.driver is not None)


def lab_engine(name: str) -> LabEngine:
    """An engine by its name.

    Raises:
        ServiceError: 422 `unknown_engine`, listing those there are.
    """
    found = LAB_ENGINES.get(name)
    if found is None:
        raise ServiceError(
            "unknown_engine",
            422,
            f"The lab cannot run {name!r}; it knows {', '.join(LAB_ENGINES)}.",
        )
    return found
