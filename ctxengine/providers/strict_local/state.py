"""Everything the provider remembers between requests, in one place and under one lock."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ctxengine.providers.strict_local.cache_anthropic import AnthropicCache
from ctxengine.providers.strict_local.cache_openai import AutomaticCache, BreakpointCache
from ctxengine.providers.strict_local.clock import AdvancingClock
from ctxengine.providers.strict_local.counting import Counter
from ctxengine.providers.strict_local.diagnostics import Fingerprints
from ctxengine.providers.strict_local.exchange import Json
from ctxengine.providers.strict_local.script import Script
from ctxengine.providers.strict_local.signatures import Seal

_KEPT_RESPONSES = 2_000
_KEPT_PARTNERS = 50_000


class Ids:
    """Ids that no other instance gives out: a prefix, the instance's own letters, a number."""

    def __init__(self, instance: str | None = None) -> None:
        """Use `instance` where ids have to be the same in every run, else random letters."""
        self._instance = instance or secrets.token_hex(4)
        self._last = 0

    def next(self, prefix: str) -> str:
        """A new id: letters and digits after the prefix and one underscore."""
        self._last += 1
        return f"{prefix}_{self._instance}{self._last:06d}"


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored response of the Responses API: the window that a follow-up continues."""

    items: tuple[Json, ...]


@dataclass(slots=True)
class State:
    """What lives as long as the provider does."""

    clock: AdvancingClock
    counter: Counter
    seal: Seal
    script: Script
    ids: Ids
    windows: Mapping[str, int]
    lock: threading.RLock = field(default_factory=threading.RLock)
    anthropic_cache: AnthropicCache = field(default_factory=AnthropicCache)
    breakpoints: BreakpointCache = field(default_factory=BreakpointCache)
    automatic: AutomaticCache = field(default_factory=AutomaticCache)
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    responses: OrderedDict[str, Stored] = field(default_factory=OrderedDict)
    partners: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """Reasoning item of each produced item that demands one, by item id."""

    def store(self, response_id: str, items: tuple[Json, ...]) -> None:
        """Keep a response for follow-ups; the oldest are forgotten."""
        self.responses[response_id] = Stored(items)
        if len(self.responses) > _KEPT_RESPONSES:
            self.responses.popitem(last=False)

    def pair(self, item_id: str, reasoning_id: str) -> None:
        """Note that an item came out of a reasoning item."""
        self.partners[item_id] = reasoning_id
        if len(self.partners) > _KEPT_PARTNERS:
            self.partners.popitem(last=False)
