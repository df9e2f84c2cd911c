"""What the provider knows about models: cache minimums, which thinking they take, which prefixes bind (providers.md 1.2, 2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ctxengine.providers.models import model_facts

OWN_PREFIX = "strict/"
"""Names of scripted models; in answers it stands in front of every model's name."""

_CLAUDE = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:-(\d{1,2})(?!\d))?")
_CLAUDE_OLD = re.compile(r"claude-(\d)(?:[-.](\d))?-(opus|sonnet|haiku)")
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_REASONS = re.compile(r"gpt-(?:[5-9]|oss)|codex|(?:^|/)o\d")
_HORIZON = re.compile(r"horizon-(\d+)(k?)")
_OLLAMA_WINDOW = 4_096

Version = tuple[int, int]


class Window(NamedTuple):
    """Tokens a model takes in and gives out."""

    total: int
    output: int


@dataclass(frozen=True, slots=True)
class ClaudeFacts:
    """One Claude model, or a scripted one that behaves like a recent Claude."""

    line: str
    version: Version

    def since(self, **versions: Version) -> bool:
        """Whether the model is at least the version named for its line; lines not named never are."""
        least = versions.get(self.line)
        return least is not None and self.version >= least

    @property
    def minimum_cached(self) -> int:
        """Fewest tokens of a prefix that is cached."""
        if self.since(opus=(5, 0), sonnet=(5, 5), haiku=(5, 5), fable=(5, 0), mythos=(5, 0)):
            return 512
        return _MINIMUMS.get((self.line, self.version), 1_024)

    @property
    def binds_thinking(self) -> bool:
        """Whether thinking is bound to all that stands before it."""
        return self.since(fable=(5, 1), mythos=(5, 1), opus=(5, 5), sonnet=(5, 5), haiku=(5, 5))

    @property
    def keeps_earlier_thinking(self) -> bool:
        """Whether thinking of earlier turns stays in the prompt."""
        return self.since(opus=(4, 5), sonnet=(4, 6), haiku=(5, 0), fable=(5, 0), mythos=(5, 0))

    @property
    def reads_only_own_thinking(self) -> bool:
        """Whether only models of this generation read its thinking, and it reads only theirs."""
        return self.since(fable=(5, 2), mythos=(5, 2))

    @property
    def takes_sampling(self) -> bool:
        """Whether temperature and its like are accepted under the older API version."""
        return self.line in {"opus", "sonnet", "haiku"} and self.version < (4, 7)

    @property
    def takes_forced_choice(self) -> bool:
        """Whether `any` and `tool` are accepted as tool choices."""
        return not self.since(fable=(5, 1), mythos=(5, 1), opus=(5, 5), sonnet=(5, 5))

    @property
    def takes_system_messages(self) -> bool:
        """Whether `role: system` is accepted inside the messages."""
        if (self.line, self.version) == ("sonnet", (5, 0)):
            return True
        return self.since(opus=(4, 8), sonnet=(5, 5), haiku=(5, 5), fable=(5, 0), mythos=(5, 0))

    @property
    def heeds_system_messages(self) -> bool:
        """Whether such messages reach the model; one model takes and ignores them."""
        return (self.line, self.version) != ("sonnet", (5, 0))

    @property
    def compacts(self) -> bool:
        """Whether native compaction is offered."""
        return self.since(opus=(4, 6), sonnet=(4, 6), haiku=(5, 5), fable=(5, 0), mythos=(5, 0))

    @property
    def refuses_long_output(self) -> bool:
        """Whether input and `max_tokens` together must fit the window (the Sonnet 4 era)."""
        return self.version < (4, 5)

    @property
    def max_images(self) -> int:
        """Most images of a request."""
        return 100 if self.version < (4, 6) else 600

    def thinking_types(self) -> frozenset[str]:
        """Values of `thinking.type` that the model takes."""
        if self.version < (4, 6):
            return frozenset({"enabled", "disabled"})
        if self.version < (4, 7):
            return frozenset({"enabled", "adaptive", "disabled"})
        if (self.line, self.version) == ("sonnet", (5, 5)):
            return frozenset({"adaptive", "between_tools"})
        if self.line in {"fable", "mythos"} or self.since(opus=(5, 5)):
            return frozenset({"adaptive"})
        return frozenset({"adaptive", "disabled"})

    @property
    def always_thinks(self) -> bool:
        """Whether thinking cannot be switched off and needs no request."""
        return "disabled" not in self.thinking_types()


_MINIMUMS: Mapping[tuple[str, Version], int] = {
    ("opus", (4, 8)): 1_024,
    ("opus", (4, 7)): 2_048,
    ("opus", (4, 6)): 4_096,
    ("opus", (4, 5)): 4_096,
    ("haiku", (4, 5)): 4_096,
    ("haiku", (3, 5)): 2_048,
    ("mythos", (0, 0)): 2_048,
}


def claude_facts(model: str) -> ClaudeFacts | None:
    """Facts by name; None for a name that is no Claude and not scripted."""
    name = model.lower()
    if match := _CLAUDE.search(name):
        return ClaudeFacts(match[1], (int(match[2]), int(match[3] or 0)))
    if match := _CLAUDE_OLD.search(name):
        return ClaudeFacts(match[3], (int(match[1]), int(match[2] or 0)))
    if "claude-mythos-preview" in name:
        return ClaudeFacts("mythos", (0, 0))
    return ClaudeFacts("opus", (5, 0)) if name.startswith(OWN_PREFIX) else None


def is_openai(model: str) -> bool:
    """Whether the OpenAI APIs know this name."""
    return model.startswith(OWN_PREFIX) or bool(re.search(r"gpt|codex|(?:^|/)o\d", model.lower()))


def gpt_version(model: str) -> Version:
    """Version of a GPT; scripted models count as recent ones."""
    if match := _GPT.search(model.lower()):
        return int(match[1]), int(match[2] or 0)
    return (5, 6) if model.startswith(OWN_PREFIX) else (0, 0)


def caches_at_breakpoints(model: str) -> bool:
    """Whether the OpenAI cache works by breakpoints (GPT-5.6 and later) and not by itself."""
    return gpt_version(model) >= (5, 6)


def reasons(model: str) -> bool:
    """Whether an OpenAI model reasons, and so refuses sampling parameters."""
    return bool(_REASONS.search(model.lower()))


def horizon_of(model: str) -> int | None:
    """Tokens up to which a `strict/horizon-N` model follows instructions."""
    match = _HORIZON.search(model.lower())
    if match is None or not model.startswith(OWN_PREFIX):
        return None
    return int(match[1]) * (1_000 if match[2] else 1)


def window_of(provider: str, model: str, overrides: Mapping[str, int]) -> Window:
    """Window of a model: what the operator said, else what is known of its name."""
    bare = model.removeprefix(OWN_PREFIX)
    stated = overrides.get(model, overrides.get(bare))
    facts = model_facts(provider, bare)
    if stated is None and provider == "ollama":
        return Window(_OLLAMA_WINDOW, _OLLAMA_WINDOW)
    if stated is None and horizon_of(model) is not None:
        return Window(128_000, facts.max_output)
    return Window(stated if stated is not None else facts.window, facts.max_output)


def scripted_name(model: str) -> str:
    """The model's name as answers give it."""
    return model if model.startswith(OWN_PREFIX) else OWN_PREFIX + model
