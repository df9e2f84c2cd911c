"""The places of a peer's request where a cache entry can end, and the markers a careful client would set.

A peer's requests go through the same prediction as ours (`cache.predict`): the same rules, lives and prices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ctxengine.engine.cache.rules import CacheRules
from ctxengine.engine.cache.trail import Place, Trail
from ctxengine.engine.history.peers.conversation import Shown
from ctxengine.engine.history.peers.policies import PLACEHOLDER_TOKENS, STUB_TOKENS

_GRID = 8
"""Blocks between the two markers that trail the newest one, so that a step of some twenty blocks still finds an entry."""
_DIGITS = 32


def trail_of_peer(shown: Shown, *, model: str, prefix: int) -> Trail:
    """The places of a request: the prefix's end, then the end of each message.

    Args:
        model: what tells the caches of models apart.
        prefix: tokens of system prompt and tools.
    """
    chain = hashlib.sha256(model.encode())
    tokens = prefix
    places = [Place(chain.hexdigest()[:_DIGITS], tokens, 0)]
    if shown.stub:
        chain.update(f"stub {shown.stub}".encode())
        tokens += STUB_TOKENS
        places.append(Place(chain.hexdigest()[:_DIGITS], tokens, 1, 1))
    for message in shown.messages:
        cleared = message.place in shown.cleared
        chain.update(f"{message.place}.{'cleared' if cleared else message.digest}".encode())
        tokens += min(message.tokens, PLACEHOLDER_TOKENS) if cleared else message.tokens
        at = len(places)
        places.append(Place(chain.hexdigest()[:_DIGITS], tokens, at, at))
    return Trail(tuple(places), prefix=0, stable=len(places) - 1, images=False)


def marks_of_peer(trail: Trail, rules: CacheRules, *, life: int) -> tuple[tuple[Place, int], ...]:
    """A careful client's four markers: the prefix, the newest block, and two on a grid behind that.

    Args:
        life: seconds asked for each of them.
    """
    if rules.kind != "markers":
        return ()
    last = len(trail.places) - 1
    grid = (last - 1) // _GRID * _GRID
    wanted: Sequence[int] = (0, *(at for at in (grid - _GRID, grid) if 0 < at < last), last)
    return tuple((trail.places[at], life) for at in dict.fromkeys(wanted))
